package dataset

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cats = Source{URL: "https://example.com/cats.tar?token=secret", Path: "/data/cats", SHA256: "ca75", Unpack: true}
	dogs = Source{URL: "https://example.com/dogs.bin", Path: "/data/dogs", Writable: true}
)

func TestAnswers(t *testing.T) {
	pinned, by5, loose := cats, Source{URL: dogs.URL, MD5: "d0"}, dogs
	before, after := noon.Add(-time.Second), noon.Add(time.Second)
	failure := &Failure{Reason: event.FetchFailed}
	tests := map[string]struct {
		transfer Download
		source   Source
		asked    time.Time
		want     bool
	}{
		"nothing is no answer":                                           {Download{}, loose, noon, false},
		"nothing is no answer for what is pinned":                        {Download{}, pinned, noon, false},
		"content that came before somebody asked may have changed":       {Download{SHA256: "d0", CheckedAt: noon}, loose, after, false},
		"content that came when somebody had asked already is an answer": {Download{SHA256: "d0", CheckedAt: noon}, loose, before, true},
		"content that came at the same moment is an answer":              {Download{SHA256: "d0", CheckedAt: noon}, loose, noon, true},
		"content that is pinned by sha256 never changes":                 {Download{SHA256: "d0", CheckedAt: noon}, pinned, after, true},
		"content that is pinned by md5 never changes":                    {Download{SHA256: "d0", CheckedAt: noon}, by5, after, true},
		"what is being written is no answer, pinned or not":              {Download{SHA256: "d0", CheckedAt: noon, PartialKey: "objects/x"}, pinned, before, false},
		"a failure is an answer for who had asked":                       {Download{Failure: failure, CheckedAt: noon}, pinned, before, true},
		"a failure is none for who asks later":                           {Download{Failure: failure, CheckedAt: noon}, pinned, after, false},
		"a failure hides content that came before":                       {Download{SHA256: "d0", Failure: failure, CheckedAt: noon}, loose, after, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.transfer.satisfies(tt.source, tt.asked); got != tt.want {
				t.Errorf("Answers: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestKey(t *testing.T) {
	other, pinned, by5 := dogs, dogs, dogs
	other.Path, other.Unpack, other.Writable = "/elsewhere", true, false
	pinned.SHA256, by5.MD5 = "d095", "d095"
	if dogs.Key() != other.Key() {
		t.Error("one source at two places is transferred twice")
	}
	if dogs.Key() == pinned.Key() || dogs.Key() == by5.Key() || pinned.Key() == by5.Key() {
		t.Error("a source of which different content is expected is transferred as one")
	}
}

func TestVerify(t *testing.T) {
	for name, tt := range map[string]struct {
		source Source
		want   string
	}{
		"without a digest anything will do": {dogs, ""},
		"the right sha256":                  {Source{SHA256: "aa"}, ""},
		"the right md5":                     {Source{MD5: "bb"}, ""},
		"both":                              {Source{SHA256: "aa", MD5: "bb"}, ""},
		"another sha256":                    {Source{URL: "http://x/?sig=1", SHA256: "a0"}, "source http://x/?sig=REDACTED has sha256 aa, but the descriptor says a0"},
		"another md5":                       {Source{URL: "http://x", SHA256: "aa", MD5: "b0"}, "source http://x has md5 bb, but the descriptor says b0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tt.source.Verify(store.Object{SHA256: "aa", MD5: "bb"}, nil)
			got := ""
			if f != nil {
				got = f.Message
				if f.Reason != event.ChecksumMismatch || f.Class != event.ClassUser {
					t.Errorf("Verify: %s %s", f.Reason, f.Class)
				}
			}
			if got != tt.want {
				t.Errorf("Verify: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	s := Settings{Downloads: -1, PollInterval: -1, Sources: source.Settings{Stall: -1}}
	want := "fetcher: transfers: must not be negative\nlease, look: must not be negative\nsources.stall: must not be negative"
	if err := s.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate: %v", err)
	}
	if _, err := New(s, Deps{}); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("New took them: %v", err)
	}
}

func TestEvict(t *testing.T) {
	stored := func(digest string, size int64, unused time.Duration, runs ...string) Stored {
		return Stored{Object: store.Object{SHA256: digest, Size: size, LastUsed: noon.Add(-unused)}, Runs: runs}
	}
	for name, tt := range map[string]struct {
		limits limits
		all    []Stored
		want   string
	}{
		"without limits everything stays":          {all: []Stored{stored("a", 1<<50, 1000*time.Hour)}},
		"what is too old goes":                     {limits: limits{Age: time.Hour}, all: []Stored{stored("a", 1, 2*time.Hour), stored("b", 1, 30*time.Minute)}, want: "a"},
		"what a run needs stays, however old":      {limits: limits{Age: time.Hour, Size: 1}, all: []Stored{stored("a", 9, 2*time.Hour, "r1")}},
		"what is too much goes, the oldest first":  {limits: limits{Size: 10}, all: []Stored{stored("a", 5, time.Hour), stored("b", 5, 3*time.Hour), stored("c", 5, 2*time.Hour)}, want: "b"},
		"as much goes as must":                     {limits: limits{Size: 4}, all: []Stored{stored("a", 5, time.Hour), stored("b", 5, 3*time.Hour), stored("c", 4, 10*time.Minute)}, want: "b a"},
		"what fits stays":                          {limits: limits{Size: 10}, all: []Stored{stored("a", 5, time.Hour), stored("b", 5, 3*time.Hour)}},
		"the next one goes where a run needs it":   {limits: limits{Size: 5}, all: []Stored{stored("a", 5, time.Hour), stored("b", 5, 3*time.Hour, "r1")}, want: "a"},
		"what was used just now stays":             {limits: limits{Size: 1, Age: 1}, all: []Stored{stored("a", 5, 4*time.Minute)}},
		"of two of one age the digest tells":       {limits: limits{Size: 5}, all: []Stored{stored("b", 5, time.Hour), stored("a", 5, time.Hour)}, want: "a"},
		"age comes before size, and counts for it": {limits: limits{Size: 5, Age: 2 * time.Hour}, all: []Stored{stored("a", 5, time.Hour), stored("b", 5, 3*time.Hour)}, want: "b"},
		"a clock that was set back evicts nothing": {limits: limits{Age: time.Hour, Size: 1}, all: []Stored{stored("a", 5, -time.Hour)}},
		"what nobody knows the age of is old":      {limits: limits{Age: time.Hour}, all: []Stored{{Object: store.Object{SHA256: "a"}}}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range evictable(tt.all, tt.limits, noon) {
				got = append(got, s.SHA256)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMakeRoom(t *testing.T) {
	stored := func(digest string, size int64, unused time.Duration, runs ...string) Stored {
		return Stored{Object: store.Object{SHA256: digest, Size: size, LastUsed: noon.Add(-unused)}, Runs: runs}
	}
	all := []Stored{stored("a", 4<<30, time.Hour), stored("b", 4<<30, 3*time.Hour), stored("c", 4<<30, 4*time.Hour, "r1"), stored("d", 4<<30, 2*time.Hour)}
	for name, tt := range map[string]struct {
		want, free int64
		gone       string
	}{
		"as much goes as is lacking, the oldest first":          {want: 9 << 30, free: 2 << 30, gone: "b d"},
		"what is free already need not be made":                 {want: 2 << 30, free: 2 << 30},
		"nothing goes where even all of it would not do":        {want: 15 << 30, free: 2 << 30},
		"all goes where just that will do":                      {want: 14 << 30, free: 2 << 30, gone: "b d a"},
		"what is free is nothing where nobody knows":            {want: 1, free: -1, gone: "b"},
		"some goes where nobody knows how much is wanted":       {want: -1, free: 0, gone: "b"},
		"none goes where a disk that is not full lacks nothing": {want: -1, free: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range victims(all, tt.want, tt.free, noon) {
				got = append(got, s.SHA256)
			}
			if diff := cmp.Diff(tt.gone, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	small := []Stored{stored("a", 1<<20, time.Hour), stored("b", 1<<20, 3*time.Hour)}
	if got := victims(small, -1, 0, noon); len(got) != 2 {
		t.Errorf("of what is less than some %d go, not all", len(got))
	}
}

func TestForgetAndOrphaned(t *testing.T) {
	finished := store.Run{Phase: event.PhaseFinished, Updated: noon.Add(-2 * time.Hour)}
	running := finished
	running.Phase = event.PhaseRunning
	if !endingExpired(finished, time.Hour, noon) || endingExpired(finished, 3*time.Hour, noon) || endingExpired(running, time.Hour, noon) || endingExpired(store.Run{}, 0, noon) {
		t.Error("forget: only the orders of runs that are over for long")
	}
	old := store.BucketObject{Key: "objects/a", Modified: noon.Add(-2 * time.Hour)}
	young := store.BucketObject{Key: "objects/a", Modified: noon.Add(-time.Minute)}
	if !isOrphan(old, false, noon) || isOrphan(young, false, noon) || isOrphan(old, true, noon) {
		t.Error("orphaned: only old objects that nobody remembers")
	}
}

func TestUnpin(t *testing.T) {
	pin := store.Pin{Run: "r1", At: noon.Add(-2 * time.Hour)}
	young := store.Pin{Run: "r1", At: noon.Add(-time.Minute)}
	for name, tt := range map[string]struct {
		pin  store.Pin
		run  *store.Run
		left bool
		want bool
	}{
		"of a run that is over":                     {pin: young, run: &store.Run{Phase: event.PhaseFinished}, want: true},
		"of a run that goes on":                     {pin: pin, run: &store.Run{Phase: event.PhaseRunning}},
		"of a run that nobody knows, for long":      {pin: pin, want: true},
		"of a run that nobody knows yet":            {pin: young},
		"of a run of which something is to be said": {pin: pin, left: true},
	} {
		if got := pinExpired(tt.pin, tt.run, tt.left, noon); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
