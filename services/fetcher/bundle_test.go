package fetcher_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// uploadCode stores code as the gateway does, and pins it for runs.
func (w *fixture) uploadCode(t *testing.T, content, owner string, runs ...string) event.Bundle {
	t.Helper()
	o, err := w.objects.Put(t.Context(), "objects/code"+sha256Of([]byte(content))[:8], int64(len(content)), false, func(to io.Writer) error {
		_, err := io.WriteString(to, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Created, o.LastUsed, o.Uploaded = time.Now().UTC(), time.Now().UTC(), true
	if err := store.Create(t.Context(), w.docs, store.KindObject, o.SHA256, o); err != nil {
		t.Fatal(err)
	}
	if owner != "" {
		if err := store.Create(t.Context(), w.docs, store.KindCodeBundle, owner+"!"+o.SHA256, map[string]string{"sha256": o.SHA256}); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range runs {
		w.pin(t, o.SHA256, run, time.Now())
	}
	return event.Bundle{SHA256: o.SHA256, Size: o.Size}
}

func (w *fixture) pin(t *testing.T, digest, run string, at time.Time) {
	t.Helper()
	if err := store.Create(t.Context(), w.docs, store.KindPin, store.PinKey(digest, run), store.Pin{Run: run, At: at.UTC()}); err != nil {
		t.Fatal(err)
	}
}

// withBundle returns a run with code sent along.
func withBundle(run event.Submitted, code event.Bundle) event.Submitted {
	run.Bundle = &code
	return run
}

func TestCodeThatWasSentAlongIsThereWithoutATransfer(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	p := w.start(t, quick())
	code := w.uploadCode(t, "code", "ann", "r1", "r2")
	p.PublishAndWait(withBundle(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}), code))
	p.PublishAndWait(withBundle(runWith("r2"), code))
	want := pod.Code(code)
	want.Object = "objects/code" + code.SHA256[:8]
	for run, n := range map[string]int{"r1": 2, "r2": 1} {
		got := p.waitFetched(t, run)
		if len(got) != n {
			t.Fatalf("run %s has %+v", run, got)
		}
		if diff := cmp.Diff(want, got[n-1]); diff != "" {
			t.Errorf("run %s (-want +got):\n%s", run, diff)
		}
	}
	if got := w.docsOf(t, store.KindDownload); len(got) != 1 {
		t.Errorf("%d transfers, want that of the data set alone", len(got))
	}
	w.waitClean(t)
}

func TestARunWhoseCodeIsLostEndsAndSaysSo(t *testing.T) {
	w := newFixture(t)
	p := w.start(t, quick())
	p.PublishAndWait(withBundle(runWith("r1"), event.Bundle{SHA256: sha256Of([]byte("none")), Size: 4}))
	got := p.waitFinished(t, "r1")
	if got.Outcome != event.Failed || got.Class != event.ClassPlatform || got.Reason != event.FetchFailed || !strings.Contains(got.Message, "send it again") {
		t.Errorf("ended as %+v", got)
	}
}

func TestCodeStaysWhileARunNeedsItOrSomebodyKeepsIt(t *testing.T) {
	w := newFixture(t)
	owned := w.uploadCode(t, "kept", "ann")
	needed, unknown := w.uploadCode(t, "needed", "", "r1"), w.uploadCode(t, "unheard", "", "r9")
	finished, ghost := w.uploadCode(t, "over", "", "r2"), w.uploadCode(t, "ghost", "")
	w.pin(t, ghost.SHA256, "r3", time.Now().Add(-2*time.Hour))
	waiting := w.uploadCode(t, "waiting", "")
	w.pin(t, waiting.SHA256, "r4", time.Now().Add(-2*time.Hour))
	if err := store.Create(t.Context(), w.docs, store.KindOutbox, "r4", true); err != nil {
		t.Fatal(err)
	}
	fresh := w.uploadCode(t, "fresh", "")
	w.putRun(t, "r1", event.PhaseRunning)
	w.putRun(t, "r2", event.PhaseFinished)
	for _, code := range []event.Bundle{owned, needed, unknown, finished, ghost, waiting} {
		w.setUnusedFor(t, code.SHA256, time.Hour)
	}
	for range 2 { // the same sweep or the next one may see a pin that is removed
		if err := w.cache(t, quick()).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		code event.Bundle
		want bool
	}{
		"what an owner keeps":                {owned, true},
		"what a run needs":                   {needed, true},
		"what a run needs that is not known": {unknown, true},
		"what lies in the outbox":            {waiting, true},
		"what came just now":                 {fresh, true},
		"what a run needed that is over":     {finished, false},
		"what a run needed that never was":   {ghost, false},
	} {
		_, err := w.docs.Doc(t.Context(), store.KindObject, tt.code.SHA256)
		if (err == nil) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(3, len(w.docsOf(t, store.KindPin))); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestCodeStaysForTheScheduleThatNamesItUntilThatIsDeleted(t *testing.T) {
	w := newFixture(t)
	current, previous, deleted := w.uploadCode(t, "names", ""), w.uploadCode(t, "named before", ""), w.uploadCode(t, "deleted", "")
	for _, code := range []event.Bundle{current, previous} {
		w.pin(t, code.SHA256, "s1", time.Now().Add(-2*time.Hour))
	}
	w.pin(t, deleted.SHA256, "s2", time.Now().Add(-2*time.Hour))
	for id, plan := range map[string]store.ScheduleRetention{"s1": {Script: current.SHA256}, "s2": {Script: deleted.SHA256, Deleted: time.Now()}} {
		if err := store.Create(t.Context(), w.docs, store.KindSchedule, id, plan); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.cache(t, quick()).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range w.docsOf(t, store.KindPin) {
		got = append(got, d.Key)
	}
	if diff := cmp.Diff([]string{store.PinKey(current.SHA256, "s1")}, got); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestCodeStaysForASetUntilItsRunsHaveEnded(t *testing.T) {
	w := newFixture(t)
	running, finished := w.uploadCode(t, "running", ""), w.uploadCode(t, "finished", "")
	for id, code := range map[string]event.Bundle{"s1": running, "s2": finished} {
		w.pin(t, code.SHA256, id, time.Now().Add(-2*time.Hour))
		set := store.SetRetention{Script: code.SHA256}
		if id == "s2" {
			set.Ended = time.Now()
		}
		if err := store.Create(t.Context(), w.docs, store.KindSet, id, set); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.cache(t, quick()).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range w.docsOf(t, store.KindPin) {
		got = append(got, d.Key)
	}
	if diff := cmp.Diff([]string{store.PinKey(running.SHA256, "s1")}, got); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestNoLimitEvictsCodeThatARunNeedsBeforeAnybodyHearsOfIt(t *testing.T) {
	w := newFixture(t)
	code := w.uploadCode(t, "code", "ann", "r1")
	w.setUnusedFor(t, code.SHA256, time.Hour)
	s := quick()
	s.MaxStored, s.MaxUnused = 1, time.Minute
	if err := w.cache(t, s).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := w.start(t, s)
	p.PublishAndWait(withBundle(runWith("r1"), code))
	if got := p.waitFetched(t, "r1"); len(got) != 1 || string(w.content(t, got[0])) != "code" {
		t.Errorf("fetched %+v", got)
	}
}
