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

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

func TestARunWithoutDataIsFetchedAtOnceAndNeedsNoStore(t *testing.T) {
	w := newFixture(t)
	if err := w.docs.Close(); err != nil {
		t.Fatal(err)
	}
	p := &process{Bus: w.start(t, quick()).Bus}
	run := runWith("r1")
	p.PublishAndWait(run)
	want := event.Fetched{Header: run.Cause("fetched", ""), Name: "n", File: "f.toml", Descriptor: run.Descriptor, Labels: run.Labels, Data: []event.Data{}}
	if diff := cmp.Diff([]string{"bai.submitted r1", "bai.fetched r1"}, p.TakeLines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Data, p.waitFetched(t, "r1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDataAreFetchedAndVerified(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	cats, dogs := bytesOf(1, 3<<20), []byte("dogs")
	p := w.start(t, quick())
	run := runWith("r1",
		data{src: s.put("/cats", page{content: cats}), sha256: sha256Of(cats), md5: md5Of(cats)},
		data{src: s.put("/dogs", page{content: dogs})},
		data{src: s.put("/more", page{content: dogs}) + "?token=secret", md5: strings.ToUpper(md5Of(dogs))})
	p.PublishAndWait(run)
	got := p.waitFetched(t, "r1")
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
	if messages := p.statusMessages(); messages[0] != "fetching 3 data sets" {
		t.Errorf("said %q", messages)
	}
	w.waitClean(t)

	p.TakeLines()
	p.Replay()
	if lines := p.TakeLines(); len(lines) > 0 || s.requestCount("/dogs") != 1 {
		t.Errorf("a replay said %q, and fetched %d times", lines, s.requestCount("/dogs"))
	}
}

func TestAReplayAfterARestartChangesNothing(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	good, bad := runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}), runWith("r2", data{src: s.URL + "/gone"})
	p := w.start(t, quick())
	p.PublishAndWait(good)
	p.PublishAndWait(bad)
	want, end := p.waitFetched(t, "r1"), p.waitFinished(t, "r2")
	p.stop()
	s.put("/dogs", page{content: []byte("other")})
	s.put("/gone", page{content: []byte("there")})

	q := w.start(t, quick())
	q.PublishAndWait(good)
	q.PublishAndWait(bad)
	if diff := cmp.Diff(want, q.waitFetched(t, "r1")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(end, q.waitFinished(t, "r2")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if s.requestCount("/dogs") != 1 || s.requestCount("/gone") != 0 {
		t.Error("it was fetched again")
	}
	w.waitClean(t)
}

func TestARunThatWasFetchedIsNotEndedWhenTheSettingsHaveChanged(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	run := runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})})
	p := w.start(t, quick())
	p.PublishAndWait(run)
	p.waitFetched(t, "r1")
	w.waitClean(t)
	p.stop()

	stricter := quick()
	stricter.Sources.Networks = nil
	q := w.start(t, stricter)
	q.PublishAndWait(run)
	q.waitFetched(t, "r1")
}

func TestARunThatWasLaunchedIsNotEndedWhenTheLanguageHasChanged(t *testing.T) {
	w := newFixture(t)
	run := withDescriptor("spec_version = 0")
	err := w.docs.PutRun(t.Context(), store.Run{ID: run.Run, Phase: event.PhaseRunning, Revision: 1}, store.Change{Run: run.Run, Revision: 1, Event: "e"})
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(t, quick())
	p.PublishAndWait(run)
	if diff := cmp.Diff([]string{"bai.submitted r"}, p.TakeLines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunWhoseDescriptorCannotBeReadWaitsForANewerFetcherOrItsCancel(t *testing.T) {
	w := newFixture(t)
	p := w.start(t, quick())
	p.PublishAndWait(withDescriptor("tomorrow = 1")) // of run r
	eventually(t, "nothing is said", func() bool {
		return slices.ContainsFunc(p.statusMessages(), func(text string) bool {
			return strings.HasPrefix(text, "waiting for a newer fetcher, 10m0s at most; this one cannot read what the gateway accepted: f.toml:1:")
		})
	})
	w.cancel(t, p, "r")
	if end := p.waitFinished(t, "r"); end.Outcome != event.Canceled {
		t.Errorf("finished %s, %s: %s", end.Outcome, end.Reason, end.Message)
	}
	w.waitClean(t)
}

func TestARunThatAnOlderFetcherCouldNotReadGoesOn(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	run := runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})})
	if err := store.Create(t.Context(), w.docs, store.KindOrder, "unread/r1", map[string]any{"submitted": run, "since": time.Now()}); err != nil {
		t.Fatal(err)
	}
	p := w.start(t, quick())
	p.waitFetched(t, "r1")
	w.waitClean(t)
}

func TestFailures(t *testing.T) {
	s := newSite(t)
	dogs := s.put("/dogs", page{content: []byte("dogs")})
	endless := quick()
	endless.Sources.MaxSize = 3
	tests := map[string]struct {
		settings dataset.Settings
		run      event.Submitted
		reason   event.Reason
		class    event.Class
		want     string
	}{
		"a descriptor of a newer release":       {run: withDescriptor("tomorrow = 1\n[limits]\npending_deadline = \"1s\""), reason: event.VersionSkew, class: event.ClassPlatform, want: "no newer fetcher came within 1s; this one cannot read what the gateway accepted: f.toml:1:"},
		"a source that is not there":            {run: runWith("r", data{src: s.URL + "/gone?token=secret"}), reason: event.FetchFailed, class: event.ClassUser, want: "/gone?token=REDACTED answers 404 Not Found"},
		"a scheme that we do not read":          {run: runWith("r", data{src: "s3://bucket/key"}), reason: event.SourceRefused, class: event.ClassUser, want: `scheme "s3" is not one of`},
		"a file":                                {run: runWith("r", data{src: "file:///etc/passwd"}), reason: event.SourceRefused, class: event.ClassUser, want: "the platform's settings allow no files"},
		"a private address":                     {run: runWith("r", data{src: "http://169.254.169.254/latest"}), reason: event.SourceRefused, class: event.ClassUser, want: "is not public"},
		"one of two":                            {run: runWith("r", data{src: dogs}, data{src: s.URL + "/gone"}), reason: event.FetchFailed, class: event.ClassUser, want: "answers 404"},
		"another sha256":                        {run: runWith("r", data{src: dogs, sha256: sha256Of(nil)}), reason: event.ChecksumMismatch, class: event.ClassUser, want: "has sha256 " + sha256Of([]byte("dogs")) + ", but the descriptor says " + sha256Of(nil)},
		"another md5":                           {run: runWith("r", data{src: dogs, md5: md5Of(nil)}), reason: event.ChecksumMismatch, class: event.ClassUser, want: "has md5 " + md5Of([]byte("dogs")) + ", but the descriptor says " + md5Of(nil)},
		"more than is allowed":                  {settings: endless, run: runWith("r", data{src: dogs}), reason: event.DataTooLarge, class: event.ClassUser, want: "more than the 3 bytes"},
		"a server that fails for ever, not you": {run: runWith("r", data{src: s.put("/500", page{status: 500})}), reason: event.FetchFailed, class: event.ClassInfra, want: "tried 7 times"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if tt.settings.PollInterval == 0 {
				tt.settings = quick()
			}
			p := w.start(t, tt.settings)
			p.PublishAndWait(tt.run)
			got := p.waitFinished(t, tt.run.Run)
			if got.Outcome != event.Failed || got.Reason != tt.reason || got.Class != tt.class || !strings.Contains(got.Message, tt.want) {
				t.Errorf("finished %s, %s, %s: %s\nwant %s, %s: %s", got.Outcome, got.Class, got.Reason, got.Message, tt.class, tt.reason, tt.want)
			}
			w.waitClean(t)
		})
	}
}

func TestAFailureIsNoAnswerForTheNextRun(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.URL + "/dogs"}))
	p.waitFinished(t, "r1")
	s.put("/dogs", page{content: []byte("dogs")})
	p.PublishAndWait(runWith("r2", data{src: s.URL + "/dogs"}))
	p.waitFetched(t, "r2")
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
			w, s := newFixture(t), newSite(t)
			p := w.start(t, quick())
			src := s.put("/dogs", page{content: dogs, etag: tt.etag})
			tt.first.src, tt.next.src = src, src
			p.PublishAndWait(runWith("r1", tt.first))
			before := p.waitFetched(t, "r1")
			p.PublishAndWait(runWith("r2", tt.next))
			after := p.waitFetched(t, "r2")
			if s.requestCount("/dogs") != tt.times {
				t.Errorf("fetched %d times, want %d", s.requestCount("/dogs"), tt.times)
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
			w, s := newFixture(t), newSite(t)
			p := w.start(t, quick())
			src := s.put("/dogs", page{content: []byte("dogs"), etag: tags[0]})
			p.PublishAndWait(runWith("r1", data{src: src}))
			p.waitFetched(t, "r1")
			s.put("/dogs", page{content: []byte("wolves"), etag: tags[1]})
			p.PublishAndWait(runWith("r2", data{src: src}))
			if got := string(w.content(t, p.waitFetched(t, "r2")[0])); got != "wolves" {
				t.Errorf("fetched %q", got)
			}
		})
	}
}

func TestAnObjectThatIsGoneIsFetchedAgain(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	dogs := data{src: s.put("/dogs", page{content: []byte("dogs"), etag: `"a"`}), sha256: sha256Of([]byte("dogs"))}
	loose := data{src: dogs.src}
	for i, d := range []data{dogs, loose, dogs, loose} {
		run := fmt.Sprint("r", i)
		p.PublishAndWait(runWith(run, d))
		got := p.waitFetched(t, run)
		w.content(t, got[0])
		if err := w.objects.Delete(t.Context(), got[0].Object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHundredRunsWithThreeEqualSourcesOnTwoProcessesNeedThreeTransfers(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	var sources []data
	for i := range 3 {
		sources = append(sources, data{src: s.put(fmt.Sprint("/", i), page{content: bytesOf(byte(i), 1<<20), gated: true})})
	}
	patient := quick()
	patient.Lease = time.Minute // no process crashes in this test
	ps := []*process{w.start(t, patient), w.start(t, patient)}
	for i := range 100 {
		ps[i%2].PublishAndWait(runWith(fmt.Sprintf("r%02d", i), sources...))
	}
	s.release()
	for i := range 100 {
		run := fmt.Sprintf("r%02d", i)
		eventually(t, "run "+run+" is not fetched", func() bool { return !open(t, w, run) })
	}
	for i := range 3 {
		if got := s.requestCount(fmt.Sprint("/", i)); got != 1 {
			t.Errorf("source %d was fetched %d times", i, got)
		}
	}
	fetched := make(map[string]bool)
	for _, p := range ps {
		for _, line := range p.TakeLines() {
			if strings.HasPrefix(line, "bai.fetched") {
				fetched[line] = true
			}
		}
	}
	if len(fetched) != 100 {
		t.Errorf("%d of 100 runs are fetched", len(fetched))
	}
	w.waitClean(t)
}

func TestCancelEndsATransferThatNobodyElseWaitsFor(t *testing.T) {
	for name, by := range map[string]func(w *fixture, p *process){
		"by the command":                   func(w *fixture, p *process) { w.cancel(t, p, "r1") },
		"by the mark, found by the worker": func(w *fixture, _ *process) { w.cancel(t, nil, "r1") },
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newFixture(t), newSite(t)
			p := w.start(t, quick())
			p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}))
			eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 && len(w.files(t)) == 1 })
			by(w, p)
			got := p.waitFinished(t, "r1")
			if got.Outcome != event.Canceled || got.Reason != event.CanceledByUser {
				t.Errorf("finished %s, %s", got.Outcome, got.Reason)
			}
			eventually(t, "the transfer goes on", func() bool { return len(w.files(t)) == 0 && !open(t, w, "r1") })
			w.waitClean(t)
		})
	}
}

// cancelingStore is a store that cancels the only run that needs a download just before
// the document of its object is written.
type cancelingStore struct {
	*sqlite.Store

	cancel func()
}

func (c *cancelingStore) CreateDoc(ctx context.Context, d store.Doc) error {
	if d.Kind == store.KindObject {
		c.cancel()
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond): // the write must happen all the same
		}
	}
	return c.Store.CreateDoc(ctx, d)
}

func TestWhatHasArrivedWholeWhenATransferIsCanceledIsNoFileThatNobodyKnowsOf(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	docs := &cancelingStore{Store: w.docs}
	p := w.startOn(t, quick(), docs)
	docs.cancel = func() { w.cancel(t, p, "r1") }
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	p.waitFinished(t, "r1")
	w.waitClean(t)
}

func TestCancelOfOneRunLeavesTheOthersTheirTransfer(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	src := data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}
	p.PublishAndWait(runWith("r1", src))
	p.PublishAndWait(runWith("r2", src))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 && len(w.files(t)) == 1 && open(t, w, "r2") })
	w.cancel(t, p, "r1")
	p.waitFinished(t, "r1")
	s.release()
	p.waitFetched(t, "r2")
	if s.requestCount("/dogs") != 1 {
		t.Error("the transfer was begun anew")
	}
	w.cancel(t, p, "r2")
	p.Replay()
	if got := p.finishedEvents("r2"); len(got) > 0 {
		t.Error("a run that was fetched is canceled here")
	}
}

func TestARunThatIsCanceledBeforeItIsHeardOfIsNotFetched(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	w.cancel(t, p, "r1")
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	if got := p.waitFinished(t, "r1"); got.Outcome != event.Canceled {
		t.Errorf("finished %s", got.Outcome)
	}
	if s.requestCount("/dogs") != 0 {
		t.Error("it was fetched")
	}
}

func TestATransferThatIsStoppedIsBegunAnewByTheNextProcess(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	dogs := bytesOf(1, 4<<20)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: dogs, gated: true})}))
	eventually(t, "nothing moves", func() bool { return len(w.files(t)) == 1 })
	p.stop()
	if files, held := w.files(t), w.heldLeases(t); len(files) > 0 || len(held) > 0 {
		t.Errorf("left: %q, lease %q", files, held)
	}
	s.release()
	q := w.start(t, quick())
	if !bytes.Equal(dogs, w.content(t, q.waitFetched(t, "r1")[0])) {
		t.Error("something else was fetched")
	}
	w.waitClean(t)
}

// TestProcess is not a test: it is the process that the next test kills.
func TestProcess(t *testing.T) {
	dir, src := os.Getenv("FETCHER_DIR"), os.Getenv("FETCHER_SOURCE")
	if dir == "" {
		t.Skip("for TestATransferWhoseProcessIsKilledIsTakenOver")
	}
	p := openFixture(t, dir).start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: src}))
	<-t.Context().Done()
}

func TestATransferWhoseProcessIsKilledIsTakenOver(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	dogs := bytesOf(1, 4<<20)
	src := s.put("/dogs", page{content: dogs, gated: true})
	for i := range 10 {
		kill(t, w, src, func() bool { return s.requestCount("/dogs") == i+1 && len(w.files(t)) == 1 && len(w.heldLeases(t)) > 0 })
		if keys := objects(t, w); len(keys) > 0 {
			t.Errorf("half an object can be seen: %q", keys)
		}
	}
	s.release()
	restarted := openFixture(t, w.dir) // as after a restart
	p := restarted.start(t, quick())
	if !bytes.Equal(dogs, w.content(t, p.waitFetched(t, "r1")[0])) {
		t.Error("something else was fetched")
	}
	w.waitClean(t)
}

// kill starts a process on w and kills it once a condition holds.
func kill(t *testing.T, w *fixture, src string, cond func() bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcess$", "-test.timeout=60s")
	c.Env = append(os.Environ(), "FETCHER_DIR="+w.dir, "FETCHER_SOURCE="+src)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill() // the process may have ended
		_ = c.Wait()         // ended by the signal
	}()
	eventually(t, "the process does not come to the middle", cond)
}

func TestAHolderThatLostItsLeaseWhileItSleptChangesNothing(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	dogs := []byte("dogs dogs dogs dogs")
	src := s.put("/dogs", page{content: dogs, gated: true})
	sleeper := newBlockingStore(w, nil)
	p := w.startOn(t, quick(), sleeper)
	p.PublishAndWait(runWith("r1", data{src: src}))
	eventually(t, "nothing moves", func() bool { return len(w.files(t)) == 1 })
	sleeper.block()
	q := w.start(t, quick())
	eventually(t, "nobody takes over", func() bool { return s.requestCount("/dogs") == 2 })
	s.release()
	q.waitFetched(t, "r1")
	sleeper.unblock()
	eventually(t, "an order is open", func() bool { return !open(t, w, "r1") })
	p.stop()
	w.waitClean(t)
}

func TestAFullDiskIsWaitedForAndSaidOnce(t *testing.T) {
	dir := t.TempDir()
	full := openFixture(t, dir)
	full.objectStore = &fullStore{Objects: full.objects, full: true}
	s := newSite(t)
	p := full.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	eventually(t, "it is not tried again", func() bool { return s.requestCount("/dogs") >= 3 })
	p.stop()
	text := "the object store is full: " + s.URL + "/dogs needs 4 B, 3 B free (baictl data evict makes room, and so does the end of other runs)"
	if diff := cmp.Diff([]string{"fetching 1 data set", text}, p.statusMessages()); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if got := p.finishedEvents("r1"); len(got) > 0 {
		t.Errorf("finished: %+v", got)
	}
	w := openFixture(t, dir)
	q := w.start(t, quick())
	q.waitFetched(t, "r1")
	w.waitClean(t)
}

func TestWhatCouldNotBeToldIsToldOnceThatIsPossible(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	w.failPublishes = 1
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs"), gated: true})}))
	eventually(t, "nothing is told", func() bool { return len(p.statusMessages()) > 0 })
	if got := p.statusMessages()[0]; got != "fetching 1 data set" {
		t.Errorf("told first: %s", got)
	}
	s.release()
	p.waitFetched(t, "r1")
	w.waitClean(t)
}

func TestAnEndThatCannotBeSaidIsReplacedByOneThatCanAndTheOrderIsClosed(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	core, logs := observer.New(zap.ErrorLevel)
	w.logCore = core
	bad := runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})})
	// Without a class, as another version of this program has stored it.
	end := event.Finished{Header: bad.Cause("fetcher/finished", ""), Outcome: event.Failed, Reason: event.FetchFailed}
	err := errors.Join(
		store.Create(t.Context(), w.docs, store.KindOrder, "done/r1", dataset.Ending{Finished: &end}),
		store.Create(t.Context(), w.docs, store.KindOrder, "open/r1", dataset.Order{Submitted: bad, Sources: []dataset.Source{{URL: s.URL + "/dogs"}}, RequestedAt: noon()}),
	)
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(t, quick())
	if got := p.waitFinished(t, "r1"); got.Reason != event.PoisonedEvent || got.Class != event.ClassPlatform {
		t.Errorf("finished %s, %s: %s", got.Class, got.Reason, got.Message)
	}
	p.PublishAndWait(runWith("r2", data{src: s.URL + "/dogs"}))
	p.waitFetched(t, "r2")
	w.waitClean(t)
	if n := logs.FilterMessage("the end of an order cannot be said").Len(); n != 1 {
		t.Errorf("that is logged %d times", n)
	}
	p.PublishAndWait(bad) // a repeated event gives the same event
	if n := len(p.finishedEvents("r1")); n != 1 {
		t.Errorf("finished %d times", n)
	}
}

func TestTheOrderOfARunThatIsOverIsClosedAndItsTransferEnds(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 && len(w.files(t)) == 1 })
	finished := store.Run{ID: "r1", Phase: event.PhaseFinished, Revision: 1} // the gateway has given the run up
	if err := w.docs.PutRun(t.Context(), finished, store.Change{Run: "r1", Revision: 1, Event: "e"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the transfer goes on", func() bool { return len(w.files(t)) == 0 && !open(t, w, "r1") })
	if got := p.finishedEvents("r1"); len(got) > 0 {
		t.Errorf("finished: %+v", got)
	}
	w.waitClean(t)
}

func TestAStoreThatIsAwayIsWaitedForAndThatIsSaidOnce(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	away := newBlockingStore(w, errors.New("away"))
	core, logs := observer.New(zap.WarnLevel)
	w.logCore = core
	p := w.startOn(t, quick(), away)
	src := data{src: s.put("/dogs", page{content: []byte("dogs"), gated: true})}
	p.PublishAndWait(runWith("r1", src))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 })
	away.block()
	if err := p.TryPublish(runWith("r2", src)); !errors.Is(err, away.err) {
		t.Errorf("handled with %v, want %v", err, away.err)
	}
	s.release()
	eventually(t, "nobody asks for orders again", func() bool { return away.failureCount() > 5 })
	away.unblock()
	p.waitFetched(t, "r1")
	if n := logs.FilterMessage("orders wait").Len(); n != 1 {
		t.Errorf("that orders wait is said %d times, want once: %v", n, logs.All())
	}
	p.Redeliver(runWith("r2", src))
	p.waitFetched(t, "r2")
}

func TestProgressIsToldWhileDataMove(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}))
	half := func(messages string) bool {
		return strings.HasPrefix(messages, "fetching 1 data set: 2 MiB of 4 MiB, ")
	}
	eventually(t, "no progress is told", func() bool { return slices.ContainsFunc(p.statusMessages(), half) })
	s.release()
	p.waitFetched(t, "r1")
	messages := p.statusMessages()
	slices.Sort(messages)
	if once := slices.Compact(slices.Clone(messages)); len(once) != len(messages) {
		t.Errorf("something is said twice: %q", messages)
	}
}

func TestATransferThatIsCutFiveTimesIsResumedAndHasTheRightContent(t *testing.T) {
	const mib = 24
	file := filepath.Join(t.TempDir(), "source")
	sum := writeBig(t, file, mib)
	l := newCuttingServer(file, mib, 5)
	defer l.Close()
	w := newFixture(t)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: l.URL + "/x", sha256: sum}))
	if got := p.waitFetched(t, "r1"); got[0].SHA256 != sum {
		t.Errorf("fetched %+v", got)
	}
	if moved := l.moved.Load(); moved > mib<<20*12/10 || moved < mib<<20 {
		t.Errorf("%d bytes were moved for %d", moved, mib<<20)
	}
	w.waitClean(t)
}

func TestALocalFileIsFetchedWhereSettingsAllowIt(t *testing.T) {
	w, dir := newFixture(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dogs"), []byte("dogs"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := quick()
	settings.Sources.Folders = []string{dir}
	p := w.start(t, settings)
	p.PublishAndWait(runWith("r1", data{src: "file://" + dir + "/dogs"}))
	if got := string(w.content(t, p.waitFetched(t, "r1")[0])); got != "dogs" {
		t.Errorf("fetched %q", got)
	}
}

func open(t *testing.T, w *fixture, run string) bool {
	t.Helper()
	_, err := w.docs.Doc(t.Context(), store.KindOrder, "open/"+run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func objects(t *testing.T, w *fixture) []string {
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

func newBlockingStore(w *fixture, err error) *blockingStore {
	s := &blockingStore{Store: w.docs, err: err, unblocked: make(chan struct{})}
	s.unblock()
	return s
}
