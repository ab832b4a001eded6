package fetcher

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cats = dataset.Source{URL: "https://example.com/cats.tar?token=secret", Path: "/data/cats", SHA256: "ca75", Unpack: true}
	dogs = dataset.Source{URL: "https://example.com/dogs.bin", Path: "/data/dogs", Writable: true}
)

func TestDecide(t *testing.T) {
	more := dogs
	more.Path = "/data/more"
	notFound := dataset.SourceState{Failure: &dataset.Failure{Reason: event.FetchFailed, Class: event.ClassUser, Message: "gone"}}
	away := dataset.SourceState{Failure: &dataset.Failure{Reason: event.FetchFailed, Class: event.ClassInfra, Message: "away"}}
	tests := map[string]struct {
		sources []dataset.Source
		run     runState
		known   map[string]dataset.SourceState
		want    []string // one line for each part of the plan
	}{
		"what nothing is known of is transferred, and the user told": {
			sources: []dataset.Source{cats, dogs},
			want: []string{
				"transfer https://example.com/cats.tar?token=secret", "transfer https://example.com/dogs.bin",
				"say fetching: fetching 2 data sets, 0/2 items",
			},
		},
		"what is there is not transferred": {
			sources: []dataset.Source{cats, dogs},
			known:   map[string]dataset.SourceState{cats.Key(): fetchedState("objects/c", "ca75")},
			want:    []string{"transfer https://example.com/dogs.bin", "say fetching: fetching 2 data sets (1 done), 1/2 items"},
		},
		"one source at two paths is transferred once": {
			sources: []dataset.Source{dogs, more},
			want:    []string{"transfer https://example.com/dogs.bin", "say fetching: fetching 2 data sets, 0/2 items"},
		},
		"a run whose data are all there is fetched, in the order of its descriptor": {
			sources: []dataset.Source{dogs, cats, more},
			known:   map[string]dataset.SourceState{cats.Key(): fetchedState("objects/c", "ca75"), dogs.Key(): fetchedState("objects/d", "d095")},
			want: []string{
				"fetched https://example.com/dogs.bin to /data/dogs: objects/d d095 7 unpack=false writable=true",
				"fetched https://example.com/cats.tar?token=REDACTED to /data/cats: objects/c ca75 7 unpack=true writable=false",
				"fetched https://example.com/dogs.bin to /data/more: objects/d d095 7 unpack=false writable=true",
			},
		},
		"a source that cannot be had fails the run at once": {
			sources: []dataset.Source{cats, dogs},
			known:   map[string]dataset.SourceState{dogs.Key(): notFound},
			want:    []string{"finished failed user FetchFailed: gone"},
		},
		"of two sources that cannot be had the first is told": {
			sources: []dataset.Source{cats, dogs},
			known:   map[string]dataset.SourceState{dogs.Key(): notFound, cats.Key(): away},
			want:    []string{"finished failed infra FetchFailed: away"},
		},
		"a run that is to end is canceled": {
			sources: []dataset.Source{cats},
			run:     runCanceling,
			want:    []string{"finished canceled  CanceledByUser: canceled while its data sets were fetched"},
		},
		"a run that is to end is canceled also if it could go on or has failed": {
			sources: []dataset.Source{cats, dogs},
			run:     runCanceling,
			known:   map[string]dataset.SourceState{cats.Key(): fetchedState("objects/c", "ca75"), dogs.Key(): notFound},
			want:    []string{"finished canceled  CanceledByUser: canceled while its data sets were fetched"},
		},
		"of a run that has ended nothing is said, whatever is known": {
			sources: []dataset.Source{cats, dogs},
			run:     runEnded,
			known:   map[string]dataset.SourceState{cats.Key(): fetchedState("objects/c", "ca75"), dogs.Key(): notFound},
			want:    []string{"close the order"},
		},
		"a failure that nobody is to blame for and that is far too long can be said": {
			sources: []dataset.Source{dogs},
			known:   map[string]dataset.SourceState{dogs.Key(): {Failure: &dataset.Failure{Reason: event.FetchFailed, Message: strings.Repeat("ü", 1<<20)}}},
			want:    []string{"finished failed platform FetchFailed: " + strings.Repeat("ü", 2<<10) + "…"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := dataset.Order{Submitted: submitted("r1"), Sources: tt.sources, RequestedAt: noon}
			plan := decide(o, tt.run, tt.known)
			if diff := cmp.Diff(tt.want, messagesOf(plan)); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(plan, decide(o, tt.run, tt.known)); diff != "" {
				t.Errorf("decided otherwise the second time:\n%s", diff)
			}
			wantPublishable(t, plan, o.Submitted)
		})
	}
}

// wantPublishable checks that the events of a plan can be published.
func wantPublishable(t *testing.T, p decision, run event.Submitted) {
	t.Helper()
	events := []event.Event{p.Status}
	if p.RunEnded {
		return
	}
	if p.Ending != nil {
		events = eventsOf(*p.Ending, run)
	}
	for _, ev := range events {
		if err := ev.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestARunIsPastFetchingOnceItWaitsForItsTurn(t *testing.T) {
	var got []event.Phase
	for _, p := range append(event.Phases(), "") {
		if !pastFetching(p) {
			got = append(got, p)
		}
	}
	if diff := cmp.Diff([]event.Phase{event.PhaseSubmitted, event.PhaseFetching, ""}, got); diff != "" {
		t.Errorf("not past (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeReadIsToldByItsFirstFaultsAndHowManyMoreThereAre(t *testing.T) {
	var faults parser.Faults
	for i := range 25 {
		faults = append(faults, parser.Fault{File: "f.toml", Line: i + 1, Column: 1, Message: "wrong", Warning: i == 0})
	}
	got := strings.Split(versionSkewStatus(unreadableRun{Submitted: submitted("r1")}, faults).Message, "\n")
	if len(got) != 21 || !strings.HasSuffix(got[0], ": f.toml:2:1: wrong") || got[20] != "and 4 more" {
		t.Errorf("told %q", got)
	}
}

func TestMoving(t *testing.T) {
	for name, tt := range map[string]struct {
		progress queue.Progress
		want     string
	}{
		"of a known size":    {queue.Progress{SetsFetched: 1, SetsTotal: 3, Done: 5 << 20, Total: 1 << 30, Rate: 310 << 20}, "fetching 3 data sets (1 done): 5 MiB of 1 GiB, 310 MiB/s"},
		"of an unknown size": {queue.Progress{SetsTotal: 1, Done: 1500, Rate: 10}, "fetching 1 data set: 1.46 KiB, 10 B/s"},
		"of terabytes":       {queue.Progress{SetsTotal: 1, Done: 5 << 40, Rate: 0}, "fetching 1 data set: 5 TiB, 0 B/s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := progressStatus(tt.progress)
			if s.Message != tt.want || s.Progress.Done != tt.progress.Done || s.Progress.Total != tt.progress.Total {
				t.Errorf("Moving: %s, %+v, want %s", s.Message, s.Progress, tt.want)
			}
		})
	}
}

func TestEachCountIsAFactOfItsOwn(t *testing.T) {
	run := submitted("r1")
	a, b := fetchingStatus(run, 0, 2), fetchingStatus(run, 1, 2)
	c, d := progressStatus(queue.Progress{Run: run, SetsTotal: 2, Done: 1}), progressStatus(queue.Progress{Run: run, SetsTotal: 2, Done: 2})
	ids := map[string]bool{a.ID: true, b.ID: true, c.ID: true, d.ID: true, noSpaceStatus(run, cats, 1, store.Space{}).ID: true, noSpaceStatus(run, dogs, 1, store.Space{}).ID: true}
	if len(ids) != 6 {
		t.Errorf("6 facts have %d IDs", len(ids))
	}
}

func TestStillTellsWhatAnOrderWaitsFor(t *testing.T) {
	for name, tt := range map[string]struct {
		wait   queue.Wait
		want   string
		reason event.Reason
	}{
		"its turn":                        {wait: queue.Wait{QueuePosition: 3}, want: "NAME waits for a free transfer (3 ahead)"},
		"the first byte":                  {wait: queue.Wait{Started: true}, want: "NAME sends nothing"},
		"what its source says":            {wait: queue.Wait{Started: true, Reason: "answers 429 Too Many Requests, retrying in 5m0s (try 2 of 7)"}, want: "NAME: answers 429 Too Many Requests, retrying in 5m0s (try 2 of 7)"},
		"a job that does not start":       {wait: queue.Wait{Started: true, Reason: "its fetch job does not start: x"}, want: "NAME: its fetch job does not start: x"},
		"the platform":                    {wait: queue.Wait{Retrying: true}, want: "retrying NAME after a fault of the platform"},
		"space, of a size that is known":  {wait: queue.Wait{StoreFull: true, Total: 5 << 30, Space: store.Space{Free: 1 << 30}}, reason: event.NoSpace, want: "the object store is full: NAME needs 5 GiB, 1 GiB free (baictl data evict makes room, and so does the end of other runs)"},
		"space, of a size that is not":    {wait: queue.Wait{StoreFull: true, Total: -1}, reason: event.NoSpace, want: "the object store is full: NAME waits for room (baictl data evict makes room, and so does the end of other runs)"},
		"a source that says far too much": {wait: queue.Wait{Reason: strings.Repeat("x", 1<<20)}, want: "NAME: " + strings.Repeat("x", 1<<10) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.wait.Order.Submitted = submitted("r1")
			tt.wait.SetsFetched, tt.wait.SetsTotal, tt.wait.Source, tt.wait.Waited = 1, 2, cats, 8*time.Minute+time.Second
			s := waitStatus(tt.wait)
			if want := "fetching 2 data sets (1 done): " + strings.Replace(tt.want, "NAME", "https://example.com/cats.tar?token=REDACTED", 1) + ", for 8 min"; s.Message != want || s.Reason != tt.reason {
				t.Errorf("Still: %s %q, want %s %q", s.Reason, s.Message, tt.reason, want)
			}
			tt.wait.Waited += time.Minute
			if later := waitStatus(tt.wait); later.ID == s.ID {
				t.Error("a minute later it is no news")
			}
		})
	}
}

func TestTheMoreOrdersWaitTheLessIsSaidOfEach(t *testing.T) {
	var got []string
	for _, n := range []int{1, 6000, 1e6} {
		got = append(got, heartbeatInterval(n).String())
	}
	if diff := cmp.Diff([]string{"4m0.01s", "5m0s", "10m0s"}, got); diff != "" {
		t.Errorf("Silence (-want +got):\n%s", diff)
	}
}

func fetchedState(key, sha256 string) dataset.SourceState {
	return dataset.SourceState{Object: &store.Object{Key: key, SHA256: sha256, Size: 7}}
}

func messagesOf(p decision) []string {
	var out []string
	for _, s := range p.Missing {
		out = append(out, "transfer "+s.URL)
	}
	switch {
	case p.RunEnded:
		return append(out, "close the order")
	case p.Ending == nil:
		return append(out, fmt.Sprintf("say %s: %s, %d/%d %s", p.Status.Phase, p.Status.Message, p.Status.Progress.Done, p.Status.Progress.Total, p.Status.Progress.Unit))
	case p.Ending.Finished != nil:
		f := p.Ending.Finished
		return append(out, fmt.Sprintf("finished %s %s %s: %s", f.Outcome, f.Class, f.Reason, f.Message))
	}
	for _, d := range p.Ending.Data {
		out = append(out, fmt.Sprintf("fetched %s to %s: %s %s %d unpack=%t writable=%t", d.Source, d.Path, d.Object, d.SHA256, d.Size, d.Unpack, d.Writable))
	}
	return out
}

func submitted(run string) event.Submitted {
	return event.Submitted{Header: event.NewHeader("submit-"+run, run, "team", "me", noon), Name: "n", File: "f.toml", Descriptor: "x", Labels: map[string]string{"a": "b"}}
}
