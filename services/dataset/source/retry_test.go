package source_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/dataset/source"
)

func TestWaitsGrowAndDiffer(t *testing.T) {
	for name, tt := range map[string]struct {
		failures int
		random   float64
		want     time.Duration
	}{
		"the first is about the first wait":  {1, 0.5, time.Second},
		"it may be half of it":               {1, 0, time.Second / 2},
		"or one and a half":                  {1, 1, 3 * time.Second / 2},
		"the second is twice that":           {2, 0.5, 2 * time.Second},
		"the seventh is 64 times that":       {7, 0.5, 64 * time.Second},
		"and so are all that come after it":  {100, 0.5, 64 * time.Second},
		"a number of failures is not a bomb": {1 << 30, 0.5, 64 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := source.Backoff(time.Second, tt.failures, tt.random); got != tt.want {
				t.Errorf("backoff: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		header string
		want   time.Duration
	}{
		"nothing":                 {"", 0},
		"seconds":                 {"7", 7 * time.Second},
		"seconds with blanks":     {" 7 ", 7 * time.Second},
		"a negative number":       {"-7", 0},
		"a number beyond time":    {"9223372036854775807", 9223372036 * time.Second},
		"a date":                  {"Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second},
		"a date that has passed":  {"Fri, 02 Jan 2026 03:04:00 GMT", 0},
		"what is neither of them": {"soon", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := source.ParseRetryAfter(tt.header, now); got != tt.want {
				t.Errorf("after: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestResumable(t *testing.T) {
	for name, tt := range map[string]struct {
		etag, modified, ranges string
		want                   string
	}{
		"nothing tells whether it is the same body":  {"", "", "bytes", ""},
		"a strong tag tells":                         {`"a"`, "then", "", `"a"`},
		"a weak tag does not":                        {`W/"a"`, "then", "bytes", ""},
		"a time tells, roughly":                      {"", "then", "bytes", "then"},
		"a server without ranges is asked for all":   {`"a"`, "then", "none", ""},
		"and so it is when it says so in other case": {`"a"`, "then", " None", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := source.Resumable(source.Validators{ETag: tt.etag, Modified: tt.modified}, tt.ranges); got != tt.want {
				t.Errorf("resumable: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestContinues(t *testing.T) {
	for name, tt := range map[string]struct {
		header    string
		at, total int64
		want      bool
	}{
		"the rest":                              {"bytes 5-9/10", 5, 10, true},
		"the rest of what has no known size":    {"bytes 5-9/10", 5, -1, true},
		"the rest, of a size that is not said":  {"bytes 5-9/*", 5, 10, false},
		"something before it":                   {"bytes 4-9/10", 5, 10, false},
		"something after it":                    {"bytes 6-9/10", 5, 10, false},
		"only a part of the rest":               {"bytes 5-8/10", 5, 10, false},
		"the rest of a body that has grown":     {"bytes 5-10/11", 5, 10, false},
		"nothing":                               {"", 5, 10, false},
		"another unit":                          {"lines 5-9/10", 5, 10, false},
		"no size":                               {"bytes 5-9", 5, 10, false},
		"no end":                                {"bytes 5/10", 5, 10, false},
		"a number that only looks like the one": {"bytes 05-9/10", 5, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := source.Continues(tt.header, tt.at, tt.total, tt.total); got != tt.want {
				t.Errorf("continues: %t, want %t", got, tt.want)
			}
		})
	}
}
