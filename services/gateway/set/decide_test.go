package set

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// describe describes a set on one line, with its active runs.
func describe(s Set) string {
	active := make([]string, 0, len(s.Active))
	for _, a := range s.Active {
		word := fmt.Sprint(a.Ordinal)
		if a.Run != "" {
			word += "=" + a.Run
		}
		if a.Canceled {
			word += " canceled"
		}
		active = append(active, word)
	}
	text := fmt.Sprintf("%s next %d [%s] %d/%d/%d", s.State, s.Next, strings.Join(active, ", "), s.Counts.Succeeded, s.Counts.Failed, s.Counts.Canceled)
	if len(s.Withdrawn) > 0 {
		text += fmt.Sprintf(" withdrawn %v", s.Withdrawn)
	}
	if s.Outcome != "" {
		text += " " + string(s.Outcome)
	}
	return text
}

func TestDecide(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	two := []ActiveRun{{Ordinal: 0, Run: "a"}, {Ordinal: 1, Run: "b"}}
	ended := func(outcome event.Outcome, class event.Class, ordinals ...int) observation {
		o := observation{Ended: make(map[int]ending)}
		for _, n := range ordinals {
			o.Ended[n] = ending{Outcome: outcome, Class: class, Cell: "c", Message: "m"}
		}
		return o
	}
	for name, tt := range map[string]struct {
		set  Set
		seen observation
		want string // empty: nothing changes
	}{
		"a new set makes its first runs active": {
			set: Set{State: StateRunning, Runs: 5, MaxParallel: 2}, want: "running next 2 [0, 1] 0/0/0",
		},
		"a set that has as many active runs as it may waits": {
			set: Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 2, Active: two},
		},
		"a run that was submitted stays active, with its ID": {
			set:  Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 2, Active: []ActiveRun{{Ordinal: 0}, {Ordinal: 1}}},
			seen: observation{Submitted: map[int]string{0: "a"}}, want: "running next 2 [0=a, 1] 0/0/0",
		},
		"a run that ended makes room for the next": {
			set:  Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 2, Active: two},
			seen: ended(event.Succeeded, "", 0), want: "running next 3 [1=b, 2] 1/0/0",
		},
		"with on_failure continue, a set goes on after a failure": {
			set:  Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 2, Active: two, OnFailure: descriptors.Continue},
			seen: ended(event.Failed, event.ClassInfra, 1), want: "running next 3 [0=a, 2] 0/1/0",
		},
		"with on_failure stop, a failure ends the submissions": {
			set:  Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 2, Active: two, OnFailure: descriptors.Stop},
			seen: ended(event.Failed, event.ClassInfra, 1), want: "stopping next 2 [0=a] 0/1/0",
		},
		"with on_failure stop, a canceled run is no failure": {
			set:  Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 2, Active: two, OnFailure: descriptors.Stop},
			seen: ended(event.Canceled, "", 1), want: "running next 3 [0=a, 2] 0/0/1",
		},
		"a stopped set has finished when its active runs have ended": {
			set:  Set{State: StateStopping, Runs: 5, Next: 2, Active: two, Counts: Counts{Failed: 1}},
			seen: ended(event.Succeeded, "", 0, 1), want: "finished next 2 [] 2/1/0 failed",
		},
		"a set without more runs waits for the active ones": {
			set:  Set{State: StateRunning, Runs: 2, Next: 2, Active: two},
			seen: ended(event.Succeeded, "", 0), want: "running next 2 [1=b] 1/0/0",
		},
		"a set whose runs all succeeded has succeeded": {
			set:  Set{State: StateRunning, Runs: 2, Next: 2, Active: two},
			seen: ended(event.Succeeded, "", 0, 1), want: "finished next 2 [] 2/0/0 succeeded",
		},
		"a set with a failed run has failed": {
			set:  Set{State: StateRunning, Runs: 2, Next: 2, Active: two[:1], Counts: Counts{Failed: 1}},
			seen: ended(event.Succeeded, "", 0), want: "finished next 2 [] 1/1/0 failed",
		},
		"a set with a run that a user canceled is canceled": {
			set:  Set{State: StateRunning, Runs: 2, Next: 2, Active: two},
			seen: ended(event.Canceled, "", 0, 1), want: "finished next 2 [] 0/0/2 canceled",
		},
		"a canceled set makes no more runs active": {
			set:  Set{State: StateCanceling, Runs: 5, Next: 2, Active: two},
			seen: observation{Canceled: map[int]bool{0: true}}, want: "canceling next 2 [0=a canceled, 1=b] 0/0/0",
		},
		"a canceled set has finished when its active runs have ended": {
			set:  Set{State: StateCanceling, Runs: 5, Next: 2, Active: two},
			seen: ended(event.Succeeded, "", 0, 1), want: "finished next 2 [] 2/0/0 canceled",
		},
		"a set that was canceled before its first run has finished": {
			set: Set{State: StateCanceling, Runs: 5}, want: "finished next 0 [] 0/0/0 canceled",
		},
		"a canceled set has finished when the runs that were not submitted are withdrawn": {
			set:  Set{State: StateCanceling, Runs: 5, Next: 2, Active: []ActiveRun{{Ordinal: 0}, {Ordinal: 1}}},
			seen: observation{Withdrawn: map[int]bool{0: true, 1: true}}, want: "finished next 2 [] 0/0/0 withdrawn [0 1] canceled",
		},
		"runs that were withdrawn are the first ones that a resumed set makes": {
			set: Set{State: StateRunning, Runs: 5, MaxParallel: 2, Next: 3, Withdrawn: []int{1}}, want: "running next 4 [1, 3] 0/0/0",
		},
		"a set without more runs makes those that were withdrawn": {
			set: Set{State: StateRunning, Runs: 2, Next: 2, Withdrawn: []int{1}, Counts: Counts{Succeeded: 1}}, want: "running next 2 [1] 1/0/0",
		},
		"a set whose runs cannot be made stops": {
			set:  Set{State: StateRunning, Runs: 5, Next: 2, Active: two},
			seen: observation{Invalid: "x"}, want: "stopping next 2 [0=a, 1=b] 0/0/0",
		},
		"few runs are active without being submitted": {
			set:  Set{State: StateRunning, Runs: 50, MaxParallel: 40, Next: 2, Active: []ActiveRun{{Ordinal: 0}, {Ordinal: 1}}},
			want: "running next 20 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19] 0/0/0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := describe(tt.set)
			got, changed := decide(tt.set, tt.seen, at)
			if want := cmp.Or(tt.want, before); describe(got) != want || changed != (tt.want != "") || changed != got.Updated.Equal(at) {
				t.Errorf("%t %s at %s, want %q", changed, describe(got), got.Updated, want)
			}
			if after := describe(tt.set); after != before {
				t.Errorf("the set was %s, and is %s", before, after)
			}
			if finished := got.State == StateFinished; finished != got.Ended.Equal(at) {
				t.Errorf("it ended at %s", got.Ended)
			}
		})
	}
}

func TestASetHasNoMoreActiveRunsThanItsDocumentHasRoomFor(t *testing.T) {
	s := Set{State: StateRunning, Runs: 1000, MaxParallel: 500}
	for changed := true; changed; {
		seen := observation{Submitted: make(map[int]string)}
		for _, a := range s.Active {
			seen.Submitted[a.Ordinal] = "r"
		}
		s, changed = decide(s, seen, time.Time{})
	}
	if len(s.Active) != descriptors.MaxActiveRuns || s.Next != descriptors.MaxActiveRuns {
		t.Errorf("%d active runs, next is %d", len(s.Active), s.Next)
	}
}

func TestASetListsItsFirstFailuresAndCountsAll(t *testing.T) {
	s := Set{State: StateRunning, Runs: 20, Next: 20}
	seen := observation{Ended: make(map[int]ending)}
	for i := range 20 {
		s.Active = append(s.Active, ActiveRun{Ordinal: i, Run: fmt.Sprint("r", i)})
		seen.Ended[i] = ending{Outcome: event.Failed, Class: []event.Class{event.ClassUser, event.ClassInfra}[i%2], Cell: "c", Message: strings.Repeat("ü", 300)}
	}
	got, _ := decide(s, seen, time.Time{})
	if len(got.Failures) != maxFailures || got.Failures[9].Run != "r9" || len(got.Failures[0].Message) > maxMessage+len("…") {
		t.Errorf("failures are %+v", got.Failures)
	}
	if diff := gocmp.Diff(Counts{Failed: 20, Classes: map[event.Class]int{event.ClassUser: 10, event.ClassInfra: 10}}, got.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCancelAndResume(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		set      Set
		canceled string // empty: nothing changes
		resumed  string // empty: nothing changes
		refusal  string
	}{
		"a running set is canceled, and needs no resume": {
			set: Set{State: StateRunning, Runs: 5, Next: 2}, canceled: "canceling next 2 [] 0/0/0",
		},
		"a stopping set is canceled, or resumed": {
			set: Set{State: StateStopping, Runs: 5, Next: 2, Message: "m"}, canceled: "canceling next 2 [] 0/0/0", resumed: "running next 2 [] 0/0/0",
		},
		"a set that is being canceled is resumed later": {
			set: Set{ID: "s", State: StateCanceling, Runs: 5, Next: 2, Active: []ActiveRun{{}}}, refusal: "set s is being canceled, and 1 of its runs have not ended: wait for that, then resume it",
		},
		"a set that finished before its last run is resumed": {
			set: Set{State: StateFinished, Outcome: event.Canceled, CanceledBy: "ann", Runs: 5, Next: 2}, resumed: "running next 2 [] 0/0/0",
		},
		"a set that finished after its last run cannot be resumed": {
			set: Set{ID: "s", State: StateFinished, Outcome: event.Failed, Runs: 5, Next: 5}, refusal: "all 5 runs of set s were submitted: it has none to go on with",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := tt.set.cancel("bob", at)
			wantChange(t, "canceled", got, changed, tt.canceled, "bob")
			got, changed, err := tt.set.resume(at)
			wantChange(t, "resumed", got, changed, tt.resumed, "")
			if text := fmt.Sprint(err); text != cmp.Or(tt.refusal, "<nil>") {
				t.Errorf("refused: %s", text)
			}
		})
	}
}

// wantChange checks a set after a request, which changes nothing if want is empty.
func wantChange(t *testing.T, request string, got Set, changed bool, want, by string) {
	t.Helper()
	if changed != (want != "") || changed && (describe(got) != want || got.CanceledBy != by || got.Message != "" || !got.Ended.IsZero()) {
		t.Errorf("%s: %t %+v, want %q", request, changed, got, want)
	}
}

func TestTheEndOfASetIsEstimatedFromTheTimesOfItsRuns(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	two := []ActiveRun{{Ordinal: 4, Run: "a"}, {Ordinal: 5, Run: "b"}}
	times := Times{Runs: 4, Seconds: 240}
	for name, tt := range map[string]struct {
		set  Set
		want time.Duration // 0: not known
	}{
		"nothing is known before a run has ended": {set: Set{State: StateRunning, Runs: 10, Active: two}},
		"two at a time take half of the mean time each": {
			set: Set{State: StateRunning, Runs: 10, Active: two, Counts: Counts{Succeeded: 3, Failed: 1}, Times: times}, want: 3 * time.Minute,
		},
		"skipped repetitions are not left": {
			set:  Set{State: StateRunning, Runs: 10, Active: two, Counts: Counts{Succeeded: 4}, Times: times, CellStops: CellStops{Skipped: 4}},
			want: time.Minute,
		},
		"without an active run the next ones come one by one": {
			set: Set{State: StateRunning, Runs: 5, Counts: Counts{Succeeded: 4}, Times: times}, want: time.Minute,
		},
		"a stopping set waits for its active runs": {
			set: Set{State: StateStopping, Runs: 10, Active: two, Counts: Counts{Succeeded: 4}, Times: times}, want: time.Minute,
		},
		"a canceled set ends when its runs do":    {set: Set{State: StateCanceling, Runs: 10, Active: two, Times: times}},
		"a finished set has its end":              {set: Set{State: StateFinished, Runs: 10, Times: times}},
		"an estimate does not look ahead forever": {set: Set{State: StateRunning, Runs: 10, Active: two, Times: Times{Runs: 1, Seconds: 1e300}}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.set.Updated = at
			got, known := tt.set.EstimatedEnd()
			if known != (tt.want > 0) || known && !got.Equal(at.Add(tt.want)) {
				t.Errorf("%s, %t", got, known)
			}
		})
	}
}

func TestTheTimesOfRunsAreAddedUp(t *testing.T) {
	s := Set{State: StateRunning, Runs: 5, Next: 2, Active: []ActiveRun{{Ordinal: 0, Run: "a"}, {Ordinal: 1, Run: "b"}}}
	got, _ := decide(s, observation{Ended: map[int]ending{0: {Outcome: event.Succeeded, Time: time.Minute}, 1: {Outcome: event.Failed}}}, time.Time{})
	if got.Times != (Times{Runs: 1, Seconds: 60}) {
		t.Errorf("%+v", got.Times)
	}
}

func TestARunCountsAsSubmittedOnceItsIDIsStored(t *testing.T) {
	s := Set{Counts: Counts{Succeeded: 2, Failed: 1}, Active: []ActiveRun{{Ordinal: 3, Run: "a"}, {Ordinal: 4}, {Ordinal: 5, Run: "b"}}}
	if got := fmt.Sprint(s.Submitted(), s.ActiveRuns()); got != "5 [a b]" {
		t.Errorf("submitted and active: %s", got)
	}
}
