package exitcode_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestCodeAndLine(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code int
		line string
	}{
		"a usage":            {&exitcode.UsageError{Message: "unknown flag", Help: "baictl list --help"}, exitcode.Usage, "unknown flag (see baictl list --help)"},
		"one file's fault":   {&exitcode.FaultsError{Faults: 1, Files: 1, Of: 1}, exitcode.Usage, "1 fault"},
		"many files' faults": {&exitcode.FaultsError{Faults: 7, Files: 2, Of: 3}, exitcode.Usage, "7 faults in 2 of 3 files"},
		"regressions in a file": {
			&exitcode.RegressionError{Source: "a.csv", Regressions: 3, Series: 2, Of: 7}, exitcode.Changed,
			"a.csv has 3 regressions in 2 of 7 series",
		},
		"an invalid request":                 {&bai.InvalidError{Message: "bad\npage"}, exitcode.Usage, "bad page"},
		"an invalid field":                   {&bai.InvalidError{Message: "bad page", Faults: []*baiv1.Fault{{Remedy: "begin anew"}}}, exitcode.Usage, "bad page (begin anew)"},
		"no such run":                        {fmt.Errorf("get run: %w", &bai.NotFoundError{Message: "no run"}), exitcode.Usage, "get run: no run (see baictl list)"},
		"a taken name":                       {&bai.ExistsError{Message: "taken", RunID: "r1"}, exitcode.Usage, "taken (it belongs to run r1)"},
		"a taken name, of nobody knows whom": {&bai.ExistsError{Message: "taken"}, exitcode.Usage, "taken"},
		"no platform": {
			&bai.UnavailableError{Target: "h:1", Away: true, Message: "connection refused"}, exitcode.Platform,
			"the platform at h:1 cannot be reached: connection refused (is `bai standalone` running? else give --server or BAI_SERVER)",
		},
		"a platform in trouble": {&bai.UnavailableError{Target: "h:1", Message: "no disk"}, exitcode.Platform, "the platform at h:1 is not available: no disk (try again)"},
		"an uncertain submission": {
			&bai.UnavailableError{Target: "h:1", Message: "x", RunID: "r1", Key: "k"}, exitcode.Platform,
			"the platform at h:1 is not available: x (run r1 may still be run: submit again with --idempotency-key k, or look: baictl get r1)",
		},
		"a platform at a limit": {
			&bai.UnavailableError{Target: "h:1", Message: "the gateway serves 2 imports already: try again in 5 s", RetryAfter: 5 * time.Second}, exitcode.Platform,
			"the gateway serves 2 imports already: try again in 5 s",
		},
		"a submission whose answer was lost": {
			&bai.UnavailableError{Target: "h:1", Message: "x", Key: "k"}, exitcode.Platform,
			"the platform at h:1 is not available: x (the run may exist: submit again with --idempotency-key k)",
		},
		"a submission to a platform that is away": {
			&bai.UnavailableError{Target: "h:1", Away: true, Message: "EOF", Key: "k"}, exitcode.Platform,
			"the platform at h:1 cannot be reached: EOF (is `bai standalone` running? else give --server or BAI_SERVER, and submit again with --idempotency-key k)",
		},
		"a set that was made and cannot be read": {
			&exitcode.UnreadError{Noun: "set", ID: "s1", Err: &bai.UnavailableError{Target: "h:1", Message: "x"}}, exitcode.Platform,
			"set s1 was made, but cannot be read: the platform at h:1 is not available: x (look: baictl set get s1)",
		},
		"an older platform": {&bai.UnsupportedError{Message: "what?"}, exitcode.Platform, "what?"},
		"anything else":     {io.ErrShortWrite, exitcode.Platform, "short write"},
		"a timeout":         {&exitcode.TimeoutError{After: 90 * time.Second}, exitcode.Time, "timed out after 1m30s"},
		"a timeout while the platform was away": {
			fmt.Errorf("list runs: %w: %w", &exitcode.TimeoutError{After: time.Second}, &bai.UnavailableError{Target: "h:1", Away: true, Message: "no"}), exitcode.Time,
			"list runs: timed out after 1s: the platform at h:1 cannot be reached: no (is `bai standalone` running? else give --server or BAI_SERVER)",
		},
		"a run that was left": {
			&exitcode.DetachedError{ID: "r1", Cause: exitcode.ErrDetached}, exitcode.Time,
			"interrupted: run r1 goes on (come back: baictl watch r1, end it: baictl cancel r1)",
		},
		"a log that was left":   {&exitcode.DetachedError{ID: "r1", Cause: exitcode.ErrDetached, Lines: true}, exitcode.Time, "interrupted: reading the log of run r1 (come back: baictl logs -f r1)"},
		"data that are missing": {&exitcode.DataError{ID: "r1", After: time.Second}, exitcode.Platform, "the data of run r1 are not complete after 1s: the platform does not say what is there (look again: baictl get r1)"},
		"tricks":                {errors.New("a\x1b[31m\u202e"), exitcode.Platform, "a\ufffd[31m\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitcode.Code(tt.err); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
			if got := exitcode.Line(tt.err); got != tt.line {
				t.Errorf("got  %q\nwant %q", got, tt.line)
			}
		})
	}
}

func TestEveryOutcomeHasItsCode(t *testing.T) {
	for name, tt := range map[string]struct {
		last *baiv1.Change
		code int
	}{
		"succeeded":              {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED}, exitcode.OK},
		"canceled":               {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_CANCELED}, exitcode.Canceled},
		"failed, class user":     {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER}, exitcode.Failed},
		"failed, class infra":    {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_INFRA}, exitcode.Failed},
		"failed, class platform": {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_PLATFORM}, exitcode.Platform},
		"failed, class timeout":  {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_TIMEOUT}, exitcode.Time},
		"failed, no class":       {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED}, exitcode.Failed},
		"an outcome of tomorrow": {&baiv1.Change{Outcome: 99}, exitcode.Failed},
		"no outcome":             {nil, exitcode.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitcode.Code(exitcode.FromChange("r1", tt.last)); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
		})
	}
}

func TestAFailedRunNamesTheVerbThatSaysMore(t *testing.T) {
	for reason, verb := range map[string]string{"NonZeroExit": "logs", "Signaled": "logs", "FetchFailed": "why", "NeedsImage": "why", "": "why"} {
		err := exitcode.FromChange("r1", &baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, Reason: reason})
		if got, want := exitcode.Line(err), "(see baictl "+verb+" r1)"; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q at its end", reason, got, want)
		}
	}
}

func TestSamplesOfTheSystemAreCountedApart(t *testing.T) {
	for want, c := range map[string]*baiv1.Completeness{
		"7 samples, 5 lines":                         {Samples: 7, Lines: 5},
		"1 sample, 5 lines, 6 samples of the system": {Samples: 7, SystemSamples: 6, Lines: 5},
		"0 samples, 1 line, 2 lines dropped":         {Lines: 1, Dropped: 2},
	} {
		if got := exitcode.StoredText(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
