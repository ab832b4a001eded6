package verdict_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestCodeAndLine(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code int
		line string
	}{
		"a usage":                            {&verdict.UsageError{Message: "unknown flag", Help: "baictl list --help"}, verdict.Usage, "unknown flag (see baictl list --help)"},
		"one file's fault":                   {&verdict.FaultsError{Faults: 1, Files: 1, Of: 1}, verdict.Usage, "1 fault"},
		"many files' faults":                 {&verdict.FaultsError{Faults: 7, Files: 2, Of: 3}, verdict.Usage, "7 faults in 2 of 3 files"},
		"an invalid request":                 {&bai.InvalidError{Message: "bad\npage"}, verdict.Usage, "bad page"},
		"no such run":                        {fmt.Errorf("get run: %w", &bai.NotFoundError{Message: "no run"}), verdict.Usage, "get run: no run (see baictl list)"},
		"a taken name":                       {&bai.ExistsError{Message: "taken", RunID: "r1"}, verdict.Usage, "taken (it belongs to run r1)"},
		"a taken name, of nobody knows whom": {&bai.ExistsError{Message: "taken"}, verdict.Usage, "taken"},
		"no platform": {
			&bai.UnavailableError{Target: "h:1", Away: true, Message: "connection refused"}, verdict.Platform,
			"the platform at h:1 cannot be reached: connection refused (is `bai standalone` running? else give --server or BAI_SERVER)",
		},
		"a platform in trouble": {&bai.UnavailableError{Target: "h:1", Message: "no disk"}, verdict.Platform, "the platform at h:1 is not available: no disk (try again)"},
		"an uncertain submission": {
			&bai.UnavailableError{Target: "h:1", Message: "x", RunID: "r1", Key: "k"}, verdict.Platform,
			"the platform at h:1 is not available: x (run r1 may still be run: submit again with --idempotency-key k, or look: baictl get r1)",
		},
		"an older platform": {&bai.UnsupportedError{Message: "what?"}, verdict.Platform, "what?"},
		"anything else":     {io.ErrShortWrite, verdict.Platform, "short write"},
		"a timeout":         {&verdict.TimeoutError{After: 90 * time.Second}, verdict.Time, "timed out after 1m30s"},
		"a timeout while the platform was away": {
			fmt.Errorf("list runs: %w: %w", &verdict.TimeoutError{After: time.Second}, &bai.UnavailableError{Target: "h:1", Away: true, Message: "no"}), verdict.Time,
			"list runs: timed out after 1s: the platform at h:1 cannot be reached: no (is `bai standalone` running? else give --server or BAI_SERVER)",
		},
		"a run that was left": {
			&verdict.LeftError{ID: "r1", Why: verdict.ErrDetached}, verdict.Time,
			"interrupted: run r1 goes on (come back: baictl watch r1, end it: baictl cancel r1)",
		},
		"a log that was left":   {&verdict.LeftError{ID: "r1", Why: verdict.ErrDetached, Lines: true}, verdict.Time, "interrupted: reading the log of run r1 (come back: baictl logs -f r1)"},
		"data that are missing": {&verdict.DataError{ID: "r1", After: time.Second}, verdict.Platform, "the data of run r1 are not complete after 1s: the platform does not say what is there (look again: baictl get r1)"},
		"tricks":                {errors.New("a\x1b[31m\u202e"), verdict.Platform, "a\ufffd[31m\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict.Code(tt.err); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
			if got := verdict.Line(tt.err); got != tt.line {
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
		"succeeded":              {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED}, verdict.Fine},
		"canceled":               {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_CANCELED}, verdict.Canceled},
		"failed, class user":     {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER}, verdict.Failed},
		"failed, class infra":    {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_INFRA}, verdict.Failed},
		"failed, class platform": {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_PLATFORM}, verdict.Platform},
		"failed, class timeout":  {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_TIMEOUT}, verdict.Time},
		"failed, no class":       {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED}, verdict.Failed},
		"an outcome of tomorrow": {&baiv1.Change{Outcome: 99}, verdict.Failed},
		"no outcome":             {nil, verdict.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict.Code(verdict.Of("r1", tt.last)); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
		})
	}
}

func TestAFailedRunNamesTheVerbThatSaysMore(t *testing.T) {
	for reason, verb := range map[string]string{"NonZeroExit": "logs", "Signaled": "logs", "FetchFailed": "why", "NeedsImage": "why", "": "why"} {
		err := verdict.Of("r1", &baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, Reason: reason})
		if got, want := verdict.Line(err), "(see baictl "+verb+" r1)"; !strings.HasSuffix(got, want) {
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
		if got := verdict.Stored(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
