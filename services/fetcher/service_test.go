package fetcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

func TestARunWithoutDataIsFetchedAtOnceAndNeedsNoStore(t *testing.T) {
	w := newWorld(t)
	if err := w.docs.Close(); err != nil {
		t.Fatal(err)
	}
	p := &process{Bus: w.start(t, quick()).Bus}
	run := ask("r1")
	p.Say(run)
	want := event.Fetched{Header: run.Cause("fetched", ""), Name: "n", File: "f.toml", Descriptor: run.Descriptor, Labels: run.Labels, Data: []event.Data{}}
	if diff := cmp.Diff([]string{"bai.submitted r1", "bai.fetched r1"}, p.Heard()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Data, p.fetched(t, "r1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDataAreFetchedAndVerified(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	cats, dogs := bytesOf(1, 3<<20), []byte("dogs")
	p := w.start(t, quick())
	run := ask("r1",
		data{src: s.put("/cats", page{content: cats}), sha256: sha256Of(cats), md5: md5Of(cats)},
		data{src: s.put("/dogs", page{content: dogs})},
		data{src: s.put("/more", page{content: dogs}) + "?token=secret", md5: strings.ToUpper(md5Of(dogs))})
	p.Say(run)
	got := p.fetched(t, "r1")
	if !bytes.Equal(cats, w.content(t, got[0])) || !bytes.Equal(dogs, w.content(t, got[1])) {
		t.Error("something else was fetched")
	}
	want := []event.Data{
		{Source: s.URL + "/cats", Path: "/data/0", Object: got[0].Object, SHA256: sha256Of(cats), Size: 3 << 20},
		{Source: s.URL + "/dogs", Path: "/data/1", Object: got[1].Object, SHA256: sha256Of(dogs), Size: 4},
		{Source: s.URL + "/more?token=REDACTED", Path: "/data/2", Object: got[1].Object, SHA256: sha256Of(dogs), Size: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
	if said := p.said(); said[0] != "fetching 3 data sets" {
		t.Errorf("said %q", said)
	}
	w.clean(t)

	p.Heard()
	p.Replay()
	if heard := p.Heard(); len(heard) > 0 || s.times("/dogs") != 1 {
		t.Errorf("a replay said %q, and fetched %d times", heard, s.times("/dogs"))
	}
}

func TestAReplayAfterARestartChangesNothing(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	good, bad := ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}), ask("r2", data{src: s.URL + "/gone"})
	p := w.start(t, quick())
	p.Say(good)
	p.Say(bad)
	want, end := p.fetched(t, "r1"), p.finished(t, "r2")
	p.stop()
	s.put("/dogs", page{content: []byte("other")})
	s.put("/gone", page{content: []byte("there")})

	q := w.start(t, quick())
	q.Say(good)
	q.Say(bad)
	if diff := cmp.Diff(want, q.fetched(t, "r1")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(end, q.finished(t, "r2")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if s.times("/dogs") != 1 || s.times("/gone") != 0 {
		t.Error("it was fetched again")
	}
	w.clean(t)
}

func TestARunThatWasFetchedIsNotEndedWhenTheSettingsHaveChanged(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	run := ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})})
	p := w.start(t, quick())
	p.Say(run)
	p.fetched(t, "r1")
	w.clean(t)
	p.stop()

	stricter := quick()
	stricter.Sources.Networks = nil
	q := w.start(t, stricter)
	q.Say(run)
	q.fetched(t, "r1")
}

func TestARunThatWasLaunchedIsNotEndedWhenTheLanguageHasChanged(t *testing.T) {
	w := newWorld(t)
	run := withDescriptor("spec_version = 0")
	err := w.docs.PutRun(t.Context(), store.Run{ID: run.Run, Phase: event.PhaseRunning, Revision: 1}, store.Change{Run: run.Run, Revision: 1, Event: "e"})
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(t, quick())
	p.Say(run)
	if diff := cmp.Diff([]string{"bai.submitted r"}, p.Heard()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunWhoseDescriptorCannotBeReadWaitsForANewerFetcherOrItsCancel(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, quick())
	p.Say(withDescriptor("tomorrow = 1")) // of run r
	eventually(t, "nothing is said", func() bool {
		return slices.ContainsFunc(p.said(), func(text string) bool {
			return strings.HasPrefix(text, "waiting for a newer fetcher, 10m0s at most; this one cannot read what the gateway accepted: f.toml:1:")
		})
	})
	w.cancel(t, p, "r")
	if end := p.finished(t, "r"); end.Outcome != event.Canceled {
		t.Errorf("finished %s, %s: %s", end.Outcome, end.Reason, end.Message)
	}
	w.clean(t)
}

func TestARunThatAnOlderFetcherCouldNotReadGoesOn(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	run := ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})})
	if err := store.Create(t.Context(), w.docs, store.KindOrder, "unread/r1", fetcher.Unread{Submitted: run, Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	p := w.start(t, quick())
	p.fetched(t, "r1")
	w.clean(t)
}

func TestFailures(t *testing.T) {
	s := newSite(t)
	dogs := s.put("/dogs", page{content: []byte("dogs")})
	endless := quick()
	endless.Sources.MaxSize = 3
	tests := map[string]struct {
		settings fetcher.Settings
		run      event.Submitted
		reason   event.Reason
		class    event.Class
		want     string
	}{
		"a descriptor of a newer release":       {run: withDescriptor("tomorrow = 1\n[limits]\npending_deadline = \"1s\""), reason: event.VersionSkew, class: event.ClassPlatform, want: "no newer fetcher came within 1s; this one cannot read what the gateway accepted: f.toml:1:"},
		"a source that is not there":            {run: ask("r", data{src: s.URL + "/gone?token=secret"}), reason: event.FetchFailed, class: event.ClassUser, want: "/gone?token=REDACTED answers 404 Not Found"},
		"a scheme that we do not read":          {run: ask("r", data{src: "s3://bucket/key"}), reason: event.SourceRefused, class: event.ClassUser, want: `scheme "s3" is not one of`},
		"a file":                                {run: ask("r", data{src: "file:///etc/passwd"}), reason: event.SourceRefused, class: event.ClassUser, want: "the platform's settings allow no files"},
		"a private address":                     {run: ask("r", data{src: "http://169.254.169.254/latest"}), reason: event.SourceRefused, class: event.ClassUser, want: "is not public"},
		"one of two":                            {run: ask("r", data{src: dogs}, data{src: s.URL + "/gone"}), reason: event.FetchFailed, class: event.ClassUser, want: "answers 404"},
		"another sha256":                        {run: ask("r", data{src: dogs, sha256: sha256Of(nil)}), reason: event.ChecksumMismatch, class: event.ClassUser, want: "has sha256 " + sha256Of([]byte("dogs")) + ", but the descriptor says " + sha256Of(nil)},
		"another md5":                           {run: ask("r", data{src: dogs, md5: md5Of(nil)}), reason: event.ChecksumMismatch, class: event.ClassUser, want: "has md5 " + md5Of([]byte("dogs")) + ", but the descriptor says " + md5Of(nil)},
		"more than is allowed":                  {settings: endless, run: ask("r", data{src: dogs}), reason: event.DataTooLarge, class: event.ClassUser, want: "more than the 3 bytes"},
		"a server that fails for ever, not you": {run: ask("r", data{src: s.put("/500", page{status: 500})}), reason: event.FetchFailed, class: event.ClassInfra, want: "tried 7 times"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.settings.Look == 0 {
				tt.settings = quick()
			}
			p := w.start(t, tt.settings)
			p.Say(tt.run)
			got := p.finished(t, tt.run.Run)
			if got.Outcome != event.Failed || got.Reason != tt.reason || got.Class != tt.class || !strings.Contains(got.Message, tt.want) {
				t.Errorf("finished %s, %s, %s: %s\nwant %s, %s: %s", got.Outcome, got.Class, got.Reason, got.Message, tt.class, tt.reason, tt.want)
			}
			w.clean(t)
		})
	}
}

func TestAFailureIsNoAnswerForTheNextRun(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	p.Say(ask("r1", data{src: s.URL + "/dogs"}))
	p.finished(t, "r1")
	s.put("/dogs", page{content: []byte("dogs")})
	p.Say(ask("r2", data{src: s.URL + "/dogs"}))
	p.fetched(t, "r2")
}

func TestWhatIsThereIsNotFetchedAgain(t *testing.T) {
	dogs := []byte("dogs")
	for name, tt := range map[string]struct {
		etag        string
		first, next data
		times       int
	}{
		"by its sha256":                           {first: data{sha256: sha256Of(dogs)}, next: data{sha256: sha256Of(dogs)}, times: 1},
		"by its sha256, whoever brought it":       {first: data{}, next: data{sha256: sha256Of(dogs)}, times: 1},
		"by its md5":                              {first: data{md5: md5Of(dogs)}, next: data{md5: md5Of(dogs)}, times: 1},
		"by its tag, if it still is what it was":  {etag: `"a"`, times: 1},
		"but without a digest or a tag, it is":    {times: 2},
		"and with an md5 for the first time also": {next: data{md5: md5Of(dogs)}, times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newSite(t)
			p := w.start(t, quick())
			src := s.put("/dogs", page{content: dogs, etag: tt.etag})
			tt.first.src, tt.next.src = src, src
			p.Say(ask("r1", tt.first))
			before := p.fetched(t, "r1")
			p.Say(ask("r2", tt.next))
			after := p.fetched(t, "r2")
			if s.times("/dogs") != tt.times {
				t.Errorf("fetched %d times, want %d", s.times("/dogs"), tt.times)
			}
			if before[0].Object != after[0].Object || len(w.files(t)) != 1 {
				t.Error("equal content is stored twice")
			}
		})
	}
}

func TestWhatHasChangedIsFetchedAgain(t *testing.T) {
	for name, tags := range map[string][2]string{"without tags": {}, "by its tag": {`"a"`, `"b"`}} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newSite(t)
			p := w.start(t, quick())
			src := s.put("/dogs", page{content: []byte("dogs"), etag: tags[0]})
			p.Say(ask("r1", data{src: src}))
			p.fetched(t, "r1")
			s.put("/dogs", page{content: []byte("wolves"), etag: tags[1]})
			p.Say(ask("r2", data{src: src}))
			if got := string(w.content(t, p.fetched(t, "r2")[0])); got != "wolves" {
				t.Errorf("fetched %q", got)
			}
		})
	}
}

func TestAnObjectThatIsGoneIsFetchedAgain(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	dogs := data{src: s.put("/dogs", page{content: []byte("dogs"), etag: `"a"`}), sha256: sha256Of([]byte("dogs"))}
	loose := data{src: dogs.src}
	for i, d := range []data{dogs, loose, dogs, loose} {
		run := fmt.Sprint("r", i)
		p.Say(ask(run, d))
		got := p.fetched(t, run)
		w.content(t, got[0])
		if err := w.objects.Delete(t.Context(), got[0].Object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHundredRunsWithThreeEqualSourcesOnTwoProcessesNeedThreeTransfers(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	var sources []data
	for i := range 3 {
		sources = append(sources, data{src: s.put(fmt.Sprint("/", i), page{content: bytesOf(byte(i), 1<<20), held: true})})
	}
	patient := quick()
	patient.Lease = time.Minute // nobody dies here
	ps := []*process{w.start(t, patient), w.start(t, patient)}
	for i := range 100 {
		ps[i%2].Say(ask(fmt.Sprintf("r%02d", i), sources...))
	}
	s.release()
	for i := range 100 {
		run := fmt.Sprintf("r%02d", i)
		eventually(t, "run "+run+" is not fetched", func() bool { return !open(t, w, run) })
	}
	for i := range 3 {
		if got := s.times(fmt.Sprint("/", i)); got != 1 {
			t.Errorf("source %d was fetched %d times", i, got)
		}
	}
	said := make(map[string]bool)
	for _, p := range ps {
		for _, line := range p.Heard() {
			if strings.HasPrefix(line, "bai.fetched") {
				said[line] = true
			}
		}
	}
	if len(said) != 100 {
		t.Errorf("%d of 100 runs are fetched", len(said))
	}
	w.clean(t)
}

func TestCancelEndsATransferThatNobodyElseWaitsFor(t *testing.T) {
	for name, by := range map[string]func(w *world, p *process){
		"by the command":                   func(w *world, p *process) { w.cancel(t, p, "r1") },
		"by the mark, found by the worker": func(w *world, _ *process) { w.cancel(t, nil, "r1") },
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newSite(t)
			p := w.start(t, quick())
			p.Say(ask("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), held: true})}))
			eventually(t, "nothing moves", func() bool { return s.times("/dogs") == 1 && len(w.files(t)) == 1 })
			by(w, p)
			got := p.finished(t, "r1")
			if got.Outcome != event.Canceled || got.Reason != event.CanceledByUser {
				t.Errorf("finished %s, %s", got.Outcome, got.Reason)
			}
			eventually(t, "the transfer goes on", func() bool { return len(w.files(t)) == 0 && !open(t, w, "r1") })
			w.clean(t)
		})
	}
}

// cut is a store that writes what becomes of an object only once the run that
// wants it is canceled, and nobody goes on.
type cut struct {
	*sqlite.Store

	cancel func()
}

func (c *cut) CreateDoc(ctx context.Context, d store.Doc) error {
	if d.Kind == store.KindObject {
		c.cancel()
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond): // it is to be written all the same
		}
	}
	return c.Store.CreateDoc(ctx, d)
}

func TestWhatHasArrivedWholeWhenATransferIsCanceledIsNoFileThatNobodyKnowsOf(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	docs := &cut{Store: w.docs}
	p := w.startOn(t, quick(), docs)
	docs.cancel = func() { w.cancel(t, p, "r1") }
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	p.finished(t, "r1")
	w.clean(t)
}

func TestCancelOfOneRunLeavesTheOthersTheirTransfer(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	src := data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), held: true})}
	p.Say(ask("r1", src))
	p.Say(ask("r2", src))
	eventually(t, "nothing moves", func() bool { return s.times("/dogs") == 1 && len(w.files(t)) == 1 && open(t, w, "r2") })
	w.cancel(t, p, "r1")
	p.finished(t, "r1")
	s.release()
	p.fetched(t, "r2")
	if s.times("/dogs") != 1 {
		t.Error("the transfer was begun anew")
	}
	w.cancel(t, p, "r2")
	p.Replay()
	if got := p.finishes("r2"); len(got) > 0 {
		t.Error("a run that was fetched is canceled here")
	}
}

func TestARunThatIsCanceledBeforeItIsHeardOfIsNotFetched(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	w.cancel(t, p, "r1")
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	if got := p.finished(t, "r1"); got.Outcome != event.Canceled {
		t.Errorf("finished %s", got.Outcome)
	}
	if s.times("/dogs") != 0 {
		t.Error("it was fetched")
	}
}

func TestATransferThatIsStoppedIsBegunAnewByTheNextProcess(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	dogs := bytesOf(1, 4<<20)
	p := w.start(t, quick())
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: dogs, held: true})}))
	eventually(t, "nothing moves", func() bool { return len(w.files(t)) == 1 })
	p.stop()
	if files, held := w.files(t), w.held(t); len(files) > 0 || len(held) > 0 {
		t.Errorf("left: %q, lease %q", files, held)
	}
	s.release()
	q := w.start(t, quick())
	if !bytes.Equal(dogs, w.content(t, q.fetched(t, "r1")[0])) {
		t.Error("something else was fetched")
	}
	w.clean(t)
}

// TestProcess is not a test: it is the process that the next one kills.
func TestProcess(t *testing.T) {
	dir, src := os.Getenv("FETCHER_DIR"), os.Getenv("FETCHER_SOURCE")
	if dir == "" {
		t.Skip("for TestATransferWhoseProcessIsKilledIsTakenOver")
	}
	p := openWorld(t, dir).start(t, quick())
	p.Say(ask("r1", data{src: src}))
	<-t.Context().Done()
}

func TestATransferWhoseProcessIsKilledIsTakenOver(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	dogs := bytesOf(1, 4<<20)
	src := s.put("/dogs", page{content: dogs, held: true})
	for i := range 10 {
		kill(t, w, src, func() bool { return s.times("/dogs") == i+1 && len(w.files(t)) == 1 && len(w.held(t)) > 0 })
		if keys := objects(t, w); len(keys) > 0 {
			t.Errorf("half an object can be seen: %q", keys)
		}
	}
	s.release()
	again := openWorld(t, w.dir) // as after a restart
	p := again.start(t, quick())
	if !bytes.Equal(dogs, w.content(t, p.fetched(t, "r1")[0])) {
		t.Error("something else was fetched")
	}
	w.clean(t)
}

// kill starts a process on w and kills it once something is so.
func kill(t *testing.T, w *world, src string, so func() bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcess$", "-test.timeout=60s")
	c.Env = append(os.Environ(), "FETCHER_DIR="+w.dir, "FETCHER_SOURCE="+src)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // by our own signal
	}()
	eventually(t, "the process does not come to the middle", so)
}

func TestAHolderThatLostItsLeaseWhileItSleptChangesNothing(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	dogs := []byte("dogs dogs dogs dogs")
	src := s.put("/dogs", page{content: dogs, held: true})
	sleeper := awake(w, nil)
	p := w.startOn(t, quick(), sleeper)
	p.Say(ask("r1", data{src: src}))
	eventually(t, "nothing moves", func() bool { return len(w.files(t)) == 1 })
	sleeper.sleep()
	q := w.start(t, quick())
	eventually(t, "nobody takes over", func() bool { return s.times("/dogs") == 2 })
	s.release()
	q.fetched(t, "r1")
	sleeper.wake()
	eventually(t, "an order is open", func() bool { return !open(t, w, "r1") })
	p.stop()
	w.clean(t)
}

func TestAFullDiskIsWaitedForAndSaidOnce(t *testing.T) {
	dir := t.TempDir()
	full := openWorld(t, dir)
	full.shelf = &cramped{Objects: full.objects, full: true}
	s := newSite(t)
	p := full.start(t, quick())
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	eventually(t, "it is not tried again", func() bool { return s.times("/dogs") >= 3 })
	p.stop()
	text := "the object store is full: " + s.URL + "/dogs needs 4 B, 3 B free (baictl data evict makes room, and so does the end of other runs)"
	if diff := cmp.Diff([]string{"fetching 1 data set", text}, p.said()); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if got := p.finishes("r1"); len(got) > 0 {
		t.Errorf("finished: %+v", got)
	}
	w := openWorld(t, dir)
	q := w.start(t, quick())
	q.fetched(t, "r1")
	w.clean(t)
}

func TestWhatCouldNotBeToldIsToldOnceThatIsPossible(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	w.mute = 1
	p := w.start(t, quick())
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs"), held: true})}))
	eventually(t, "nothing is told", func() bool { return len(p.said()) > 0 })
	if got := p.said()[0]; got != "fetching 1 data set" {
		t.Errorf("told first: %s", got)
	}
	s.release()
	p.fetched(t, "r1")
	w.clean(t)
}

func TestAnEndThatCannotBeSaidIsReplacedByOneThatCanAndTheOrderIsClosed(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	core, said := observer.New(zap.ErrorLevel)
	w.said = core
	bad := ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})})
	end := fetcher.Failed(bad, fetcher.Failure{Reason: event.FetchFailed})
	end.Class = "" // as another version of this program has remembered it
	err := errors.Join(
		store.Create(t.Context(), w.docs, store.KindOrder, "done/r1", fetcher.Ending{Finished: &end}),
		store.Create(t.Context(), w.docs, store.KindOrder, "open/r1", fetcher.Order{Submitted: bad, Sources: []fetcher.Source{{URL: s.URL + "/dogs"}}, Asked: noon}),
	)
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(t, quick())
	if got := p.finished(t, "r1"); got.Reason != event.PoisonedEvent || got.Class != event.ClassPlatform {
		t.Errorf("finished %s, %s: %s", got.Class, got.Reason, got.Message)
	}
	p.Say(ask("r2", data{src: s.URL + "/dogs"}))
	p.fetched(t, "r2")
	w.clean(t)
	if n := said.FilterMessage("the end of an order cannot be said").Len(); n != 1 {
		t.Errorf("that is logged %d times", n)
	}
	p.Say(bad) // who hears of it again says the same
	if n := len(p.finishes("r1")); n != 1 {
		t.Errorf("finished %d times", n)
	}
}

func TestTheOrderOfARunThatIsOverIsClosedAndItsTransferEnds(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), held: true})}))
	eventually(t, "nothing moves", func() bool { return s.times("/dogs") == 1 && len(w.files(t)) == 1 })
	over := store.Run{ID: "r1", Phase: event.PhaseFinished, Revision: 1} // the gateway gave it up
	if err := w.docs.PutRun(t.Context(), over, store.Change{Run: "r1", Revision: 1, Event: "e"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the transfer goes on", func() bool { return len(w.files(t)) == 0 && !open(t, w, "r1") })
	if got := p.finishes("r1"); len(got) > 0 {
		t.Errorf("finished: %+v", got)
	}
	w.clean(t)
}

func TestAStoreThatIsAwayIsWaitedForAndThatIsSaidOnce(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	away := awake(w, errors.New("away"))
	core, said := observer.New(zap.WarnLevel)
	w.said = core
	p := w.startOn(t, quick(), away)
	src := data{src: s.put("/dogs", page{content: []byte("dogs"), held: true})}
	p.Say(ask("r1", src))
	eventually(t, "nothing moves", func() bool { return s.times("/dogs") == 1 })
	away.sleep()
	if err := p.Try(ask("r2", src)); !errors.Is(err, away.err) {
		t.Errorf("handled with %v, want %v", err, away.err)
	}
	s.release()
	eventually(t, "nobody asks for orders again", func() bool { return away.refusals() > 5 })
	away.wake()
	p.fetched(t, "r1")
	if n := said.FilterMessage("orders wait").Len(); n != 1 {
		t.Errorf("that orders wait is said %d times, want once: %v", n, said.All())
	}
	p.Again(ask("r2", src))
	p.fetched(t, "r2")
}

func TestProgressIsToldWhileDataMove(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	p.Say(ask("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), held: true})}))
	half := func(said string) bool {
		return strings.HasPrefix(said, "fetching 1 data set: 2 MiB of 4 MiB, ")
	}
	eventually(t, "no progress is told", func() bool { return slices.ContainsFunc(p.said(), half) })
	s.release()
	p.fetched(t, "r1")
	said := p.said()
	slices.Sort(said)
	if once := slices.Compact(slices.Clone(said)); len(once) != len(said) {
		t.Errorf("something is said twice: %q", said)
	}
}

func TestATransferThatIsCutFiveTimesIsResumedAndHasTheRightContent(t *testing.T) {
	const mib = 24
	file := filepath.Join(t.TempDir(), "source")
	sum := writeBig(t, file, mib)
	l := newLine(file, mib, 5)
	defer l.Close()
	w := newWorld(t)
	p := w.start(t, quick())
	p.Say(ask("r1", data{src: l.URL + "/x", sha256: sum}))
	if got := p.fetched(t, "r1"); got[0].SHA256 != sum {
		t.Errorf("fetched %+v", got)
	}
	if moved := l.moved.Load(); moved > mib<<20*12/10 || moved < mib<<20 {
		t.Errorf("%d bytes were moved for %d", moved, mib<<20)
	}
	w.clean(t)
}

func TestALocalFileIsFetchedWhereSettingsAllowIt(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dogs"), []byte("dogs"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := quick()
	settings.Sources.Folders = []string{dir}
	p := w.start(t, settings)
	p.Say(ask("r1", data{src: "file://" + dir + "/dogs"}))
	if got := string(w.content(t, p.fetched(t, "r1")[0])); got != "dogs" {
		t.Errorf("fetched %q", got)
	}
}

func open(t *testing.T, w *world, run string) bool {
	t.Helper()
	_, err := w.docs.Doc(t.Context(), store.KindOrder, "open/"+run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func objects(t *testing.T, w *world) []string {
	t.Helper()
	var keys []string
	for o, err := range w.objects.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return slices.Sorted(slices.Values(keys))
}

func withDescriptor(d string) event.Submitted {
	s := submitted("r")
	s.Descriptor = d
	return s
}

func awake(w *world, err error) *sleepy {
	s := &sleepy{Store: w.docs, err: err, asleep: make(chan struct{})}
	s.wake()
	return s
}
