package fetcher_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cats = fetcher.Source{URL: "https://example.com/cats.tar?token=secret", Path: "/data/cats", SHA256: "ca75", Unpack: true}
	dogs = fetcher.Source{URL: "https://example.com/dogs.bin", Path: "/data/dogs", Writable: true}
)

func TestDecide(t *testing.T) {
	more := dogs
	more.Path = "/data/more"
	notFound := fetcher.SourceState{Failure: &fetcher.Failure{Reason: event.FetchFailed, Class: event.ClassUser, Message: "gone"}}
	away := fetcher.SourceState{Failure: &fetcher.Failure{Reason: event.FetchFailed, Class: event.ClassInfra, Message: "away"}}
	tests := map[string]struct {
		sources []fetcher.Source
		run     fetcher.RunState
		known   map[string]fetcher.SourceState
		want    []string // one line for each thing that is planned
	}{
		"what nothing is known of is transferred, and the user told": {
			sources: []fetcher.Source{cats, dogs},
			want: []string{
				"transfer https://example.com/cats.tar?token=secret", "transfer https://example.com/dogs.bin",
				"say fetching: fetching 2 data sets, 0/2 items",
			},
		},
		"what is there is not transferred": {
			sources: []fetcher.Source{cats, dogs},
			known:   map[string]fetcher.SourceState{cats.Key(): fetchedState("objects/c", "ca75")},
			want:    []string{"transfer https://example.com/dogs.bin", "say fetching: fetching 2 data sets (1 done), 1/2 items"},
		},
		"one source at two paths is transferred once": {
			sources: []fetcher.Source{dogs, more},
			want:    []string{"transfer https://example.com/dogs.bin", "say fetching: fetching 2 data sets, 0/2 items"},
		},
		"a run whose data are all there is fetched, in the order of its descriptor": {
			sources: []fetcher.Source{dogs, cats, more},
			known:   map[string]fetcher.SourceState{cats.Key(): fetchedState("objects/c", "ca75"), dogs.Key(): fetchedState("objects/d", "d095")},
			want: []string{
				"fetched https://example.com/dogs.bin to /data/dogs: objects/d d095 7 unpack=false writable=true",
				"fetched https://example.com/cats.tar?token=REDACTED to /data/cats: objects/c ca75 7 unpack=true writable=false",
				"fetched https://example.com/dogs.bin to /data/more: objects/d d095 7 unpack=false writable=true",
			},
		},
		"a source that cannot be had fails the run at once": {
			sources: []fetcher.Source{cats, dogs},
			known:   map[string]fetcher.SourceState{dogs.Key(): notFound},
			want:    []string{"finished failed user FetchFailed: gone"},
		},
		"of two sources that cannot be had the first is told": {
			sources: []fetcher.Source{cats, dogs},
			known:   map[string]fetcher.SourceState{dogs.Key(): notFound, cats.Key(): away},
			want:    []string{"finished failed infra FetchFailed: away"},
		},
		"a run that is to end is canceled": {
			sources: []fetcher.Source{cats},
			run:     fetcher.RunCanceling,
			want:    []string{"finished canceled  CanceledByUser: canceled while its data sets were fetched"},
		},
		"a run that is to end is canceled also if it could go on or has failed": {
			sources: []fetcher.Source{cats, dogs},
			run:     fetcher.RunCanceling,
			known:   map[string]fetcher.SourceState{cats.Key(): fetchedState("objects/c", "ca75"), dogs.Key(): notFound},
			want:    []string{"finished canceled  CanceledByUser: canceled while its data sets were fetched"},
		},
		"of a run that has ended nothing is said, whatever is known": {
			sources: []fetcher.Source{cats, dogs},
			run:     fetcher.RunEnded,
			known:   map[string]fetcher.SourceState{cats.Key(): fetchedState("objects/c", "ca75"), dogs.Key(): notFound},
			want:    []string{"close the order"},
		},
		"a failure that nobody is to blame for and that is far too long can be said": {
			sources: []fetcher.Source{dogs},
			known:   map[string]fetcher.SourceState{dogs.Key(): {Failure: &fetcher.Failure{Reason: event.FetchFailed, Message: strings.Repeat("ü", 1<<20)}}},
			want:    []string{"finished failed platform FetchFailed: " + strings.Repeat("ü", 2<<10) + "…"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := fetcher.Order{Submitted: submitted("r1"), Sources: tt.sources, RequestedAt: noon}
			plan := fetcher.Decide(o, tt.run, tt.known)
			if diff := cmp.Diff(tt.want, messagesOf(plan)); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(plan, fetcher.Decide(o, tt.run, tt.known)); diff != "" {
				t.Errorf("decided otherwise the second time:\n%s", diff)
			}
			wantPublishable(t, plan, o.Submitted)
		})
	}
}

// wantPublishable checks that what a plan says can be said.
func wantPublishable(t *testing.T, p fetcher.Decision, run event.Submitted) {
	t.Helper()
	events := []event.Event{p.Status}
	if p.RunEnded {
		return
	}
	if p.Ending != nil {
		events = p.Ending.Events(run)
	}
	for _, ev := range events {
		if err := ev.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnswers(t *testing.T) {
	pinned, by5, loose := cats, fetcher.Source{URL: dogs.URL, MD5: "d0"}, dogs
	before, after := noon.Add(-time.Second), noon.Add(time.Second)
	failure := &fetcher.Failure{Reason: event.FetchFailed}
	tests := map[string]struct {
		transfer fetcher.DownloadRecord
		source   fetcher.Source
		asked    time.Time
		want     bool
	}{
		"nothing is no answer":                                           {fetcher.DownloadRecord{}, loose, noon, false},
		"nothing is no answer for what is pinned":                        {fetcher.DownloadRecord{}, pinned, noon, false},
		"content that came before somebody asked may have changed":       {fetcher.DownloadRecord{SHA256: "d0", CheckedAt: noon}, loose, after, false},
		"content that came when somebody had asked already is an answer": {fetcher.DownloadRecord{SHA256: "d0", CheckedAt: noon}, loose, before, true},
		"content that came at the same moment is an answer":              {fetcher.DownloadRecord{SHA256: "d0", CheckedAt: noon}, loose, noon, true},
		"content that is pinned by sha256 never changes":                 {fetcher.DownloadRecord{SHA256: "d0", CheckedAt: noon}, pinned, after, true},
		"content that is pinned by md5 never changes":                    {fetcher.DownloadRecord{SHA256: "d0", CheckedAt: noon}, by5, after, true},
		"what is being written is no answer, pinned or not":              {fetcher.DownloadRecord{SHA256: "d0", CheckedAt: noon, PartialKey: "objects/x"}, pinned, before, false},
		"a failure is an answer for who had asked":                       {fetcher.DownloadRecord{Failure: failure, CheckedAt: noon}, pinned, before, true},
		"a failure is none for who asks later":                           {fetcher.DownloadRecord{Failure: failure, CheckedAt: noon}, pinned, after, false},
		"a failure hides content that came before":                       {fetcher.DownloadRecord{SHA256: "d0", Failure: failure, CheckedAt: noon}, loose, after, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.transfer.Satisfies(tt.source, tt.asked); got != tt.want {
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
		source fetcher.Source
		want   string
	}{
		"without a digest anything will do": {dogs, ""},
		"the right sha256":                  {fetcher.Source{SHA256: "aa"}, ""},
		"the right md5":                     {fetcher.Source{MD5: "bb"}, ""},
		"both":                              {fetcher.Source{SHA256: "aa", MD5: "bb"}, ""},
		"another sha256":                    {fetcher.Source{URL: "http://x/?sig=1", SHA256: "a0"}, "source http://x/?sig=REDACTED has sha256 aa, but the descriptor says a0"},
		"another md5":                       {fetcher.Source{URL: "http://x", SHA256: "aa", MD5: "b0"}, "source http://x has md5 bb, but the descriptor says b0"},
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

func TestJudge(t *testing.T) {
	own := fmt.Errorf("x: %w", &source.Error{Reason: event.DataTooLarge, Class: event.ClassUser, Message: "m"})
	full := fmt.Errorf("x: %w", syscall.ENOSPC)
	nobody := fmt.Errorf("x: %w", &source.Error{Reason: event.FetchFailed, Message: "m"})
	longErr := fmt.Errorf("x: %w", &source.Error{Reason: event.FetchFailed, Class: event.ClassInfra, Message: strings.Repeat("x", 1<<20)})
	for name, tt := range map[string]struct {
		err         error
		done, total int64
		space       store.Space
		want        string // the failure
	}{
		"a failure that nobody is to blame for is the platform's": {err: nobody, want: "platform FetchFailed: m"},
		"the message of a failure is clipped":                     {err: longErr, want: "infra FetchFailed: " + strings.Repeat("x", 4<<10) + "…"},
		"what is larger than an empty store can never be had": {
			err: full, total: 200 << 30, space: store.Space{Free: 10 << 30, Total: 100 << 30},
			want: "user DataTooLarge: source https://example.com/dogs.bin has 200 GiB, and the object store has room for 100 GiB even when it is empty: use less of it, or have the object store moved to a larger disk (objects.url)",
		},
		"what an empty store would have room for is waited for":     {err: full, total: 90 << 30, space: store.Space{Free: 10 << 30, Total: 100 << 30}},
		"a store whose size nobody knows may have room one day":     {err: full, total: 1 << 50, space: store.Space{Free: -1, Total: -1}},
		"a body of no known size is not larger than an empty store": {err: full, total: -1, space: store.Space{}},
		"what is wrong with the source ends the run":                {err: own, want: "user DataTooLarge: m"},
		"a full store is waited for":                                {err: full, done: 5 << 30, total: 6 << 30, space: store.Space{Total: 1 << 40}},
		"a full store is waited for before anything came":           {err: full, total: -1},
		"a body of no known size that fills the store is wrong":     {err: full, done: 5 << 30, total: -1, want: "user DataTooLarge: source https://example.com/dogs.bin does not say how much it has, and had filled the object store after 5 GiB"},
		"everything else is ours, and waited for":                   {err: io.ErrClosedPipe, done: 5 << 30, total: -1},
		"nothing is nothing":                                        {total: -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := fetcher.ClassifyError(dogs, tt.err, tt.done, tt.total, tt.space); f != nil {
				got = fmt.Sprintf("%s %s: %s", f.Class, f.Reason, f.Message)
			}
			if got != tt.want {
				t.Errorf("Judge: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFull(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a full disk is full":           {fmt.Errorf("x: %w", syscall.ENOSPC), true},
		"a quota is full":               {fmt.Errorf("x: %w", syscall.EDQUOT), true},
		"another error is another fact": {io.ErrClosedPipe, false},
		"nothing is nothing":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fetcher.IsNoSpace(tt.err); got != tt.want {
				t.Errorf("Full: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestARunIsPastFetchingOnceItWaitsForItsTurn(t *testing.T) {
	var got []event.Phase
	for _, p := range append(event.Phases(), "") {
		if !fetcher.PastFetching(p) {
			got = append(got, p)
		}
	}
	if diff := cmp.Diff([]event.Phase{event.PhaseSubmitted, event.PhaseFetching, ""}, got); diff != "" {
		t.Errorf("not past (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeReadIsToldByItsFirstFaultsAndHowManyMoreThereAre(t *testing.T) {
	var faults descriptors.Faults
	for i := range 25 {
		faults = append(faults, descriptors.Fault{File: "f.toml", Line: i + 1, Column: 1, Message: "wrong", Warning: i == 0})
	}
	got := strings.Split(fetcher.VersionSkewStatus(fetcher.UnreadableRun{Submitted: submitted("r1")}, faults).Message, "\n")
	if len(got) != 21 || !strings.HasSuffix(got[0], ": f.toml:2:1: wrong") || got[20] != "and 4 more" {
		t.Errorf("told %q", got)
	}
}

func TestMoving(t *testing.T) {
	for name, tt := range map[string]struct {
		progress fetcher.Progress
		want     string
	}{
		"of a known size":    {fetcher.Progress{SetsFetched: 1, SetsTotal: 3, Done: 5 << 20, Total: 1 << 30, Rate: 310 << 20}, "fetching 3 data sets (1 done): 5 MiB of 1 GiB, 310 MiB/s"},
		"of an unknown size": {fetcher.Progress{SetsTotal: 1, Done: 1500, Rate: 10}, "fetching 1 data set: 1.46 KiB, 10 B/s"},
		"of terabytes":       {fetcher.Progress{SetsTotal: 1, Done: 5 << 40, Rate: 0}, "fetching 1 data set: 5 TiB, 0 B/s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fetcher.ProgressStatus(submitted("r1"), tt.progress)
			if s.Message != tt.want || s.Progress.Done != tt.progress.Done || s.Progress.Total != tt.progress.Total {
				t.Errorf("Moving: %s, %+v, want %s", s.Message, s.Progress, tt.want)
			}
		})
	}
}

func TestEachCountIsAFactOfItsOwn(t *testing.T) {
	run := submitted("r1")
	a, b := fetcher.FetchingStatus(run, 0, 2), fetcher.FetchingStatus(run, 1, 2)
	c, d := fetcher.ProgressStatus(run, fetcher.Progress{SetsTotal: 2, Done: 1}), fetcher.ProgressStatus(run, fetcher.Progress{SetsTotal: 2, Done: 2})
	ids := map[string]bool{a.ID: true, b.ID: true, c.ID: true, d.ID: true, fetcher.NoSpaceStatus(run, cats, 1, store.Space{}).ID: true, fetcher.NoSpaceStatus(run, dogs, 1, store.Space{}).ID: true}
	if len(ids) != 6 {
		t.Errorf("6 facts have %d IDs", len(ids))
	}
}

func TestStillTellsWhatAnOrderWaitsFor(t *testing.T) {
	for name, tt := range map[string]struct {
		wait   fetcher.Wait
		want   string
		reason event.Reason
	}{
		"its turn":                        {wait: fetcher.Wait{QueuePosition: 3}, want: "NAME waits for a free transfer (3 ahead)"},
		"the first byte":                  {wait: fetcher.Wait{Started: true}, want: "NAME sends nothing"},
		"what its source says":            {wait: fetcher.Wait{Started: true, Reason: "answers 429 Too Many Requests, retrying in 5m0s (try 2 of 7)"}, want: "NAME: answers 429 Too Many Requests, retrying in 5m0s (try 2 of 7)"},
		"a job that does not start":       {wait: fetcher.Wait{Started: true, Reason: "its fetch job does not start: x"}, want: "NAME: its fetch job does not start: x"},
		"the platform":                    {wait: fetcher.Wait{Retrying: true}, want: "retrying NAME after a fault of the platform"},
		"space, of a size that is known":  {wait: fetcher.Wait{StoreFull: true, Total: 5 << 30, Space: store.Space{Free: 1 << 30}}, reason: event.NoSpace, want: "the object store is full: NAME needs 5 GiB, 1 GiB free (baictl data evict makes room, and so does the end of other runs)"},
		"space, of a size that is not":    {wait: fetcher.Wait{StoreFull: true, Total: -1}, reason: event.NoSpace, want: "the object store is full: NAME waits for room (baictl data evict makes room, and so does the end of other runs)"},
		"a source that says far too much": {wait: fetcher.Wait{Reason: strings.Repeat("x", 1<<20)}, want: "NAME: " + strings.Repeat("x", 1<<10) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.wait.SetsFetched, tt.wait.SetsTotal, tt.wait.Source, tt.wait.Waited = 1, 2, cats, 8*time.Minute+time.Second
			s := fetcher.WaitStatus(submitted("r1"), tt.wait)
			if want := "fetching 2 data sets (1 done): " + strings.Replace(tt.want, "NAME", "https://example.com/cats.tar?token=REDACTED", 1) + ", for 8 min"; s.Message != want || s.Reason != tt.reason {
				t.Errorf("Still: %s %q, want %s %q", s.Reason, s.Message, tt.reason, want)
			}
			tt.wait.Waited += time.Minute
			if later := fetcher.WaitStatus(submitted("r1"), tt.wait); later.ID == s.ID {
				t.Error("a minute later it is no news")
			}
		})
	}
}

func TestTheMoreOrdersWaitTheLessIsSaidOfEach(t *testing.T) {
	var got []string
	for _, n := range []int{1, 6000, 1e6} {
		got = append(got, fetcher.HeartbeatInterval(n).String())
	}
	if diff := cmp.Diff([]string{"4m0.01s", "5m0s", "10m0s"}, got); diff != "" {
		t.Errorf("Silence (-want +got):\n%s", diff)
	}
}

func TestPausesGrowUpToABound(t *testing.T) {
	var got []string
	for _, n := range []int{0, 1, 2, 3, 6, 7, 1000} {
		got = append(got, fetcher.Backoff(time.Second, n).String())
	}
	if diff := cmp.Diff([]string{"1s", "1s", "2s", "4s", "32s", "32s", "32s"}, got); diff != "" {
		t.Errorf("Pause (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	s := fetcher.Settings{Downloads: -1, PollInterval: -1, Sources: source.Settings{Stall: -1}}
	want := "fetcher: transfers: must not be negative\nlease, look: must not be negative\nsources.stall: must not be negative"
	if err := s.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate: %v", err)
	}
	if _, err := fetcher.New(s, fetcher.Deps{}); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("New took them: %v", err)
	}
}

func fetchedState(key, sha256 string) fetcher.SourceState {
	return fetcher.SourceState{Object: &store.Object{Key: key, SHA256: sha256, Size: 7}}
}

func messagesOf(p fetcher.Decision) []string {
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
