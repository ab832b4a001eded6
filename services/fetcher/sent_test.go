package fetcher_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// send has code be kept as the gateway does, and pins it to runs.
func (w *world) send(t *testing.T, content, owner string, runs ...string) event.Script {
	t.Helper()
	o, err := w.objects.Put(t.Context(), "objects/code"+sha256Of([]byte(content))[:8], int64(len(content)), false, func(to io.Writer) error {
		_, err := io.WriteString(to, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Created, o.Used, o.Sent = time.Now().UTC(), time.Now().UTC(), true
	if err := store.Create(t.Context(), w.docs, store.KindObject, o.SHA256, o); err != nil {
		t.Fatal(err)
	}
	if owner != "" {
		if err := store.Create(t.Context(), w.docs, store.KindScript, owner+"!"+o.SHA256, map[string]string{"sha256": o.SHA256}); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range runs {
		w.pin(t, o.SHA256, run, time.Now())
	}
	return event.Script{SHA256: o.SHA256, Size: o.Size}
}

func (w *world) pin(t *testing.T, digest, run string, at time.Time) {
	t.Helper()
	if err := store.Create(t.Context(), w.docs, store.KindPin, store.PinKey(digest, run), store.Pin{Run: run, At: at.UTC()}); err != nil {
		t.Fatal(err)
	}
}

// along is a run with which code was sent.
func along(run event.Submitted, code event.Script) event.Submitted {
	run.Script = &code
	return run
}

func TestCodeThatWasSentAlongIsThereWithoutATransfer(t *testing.T) {
	w, s := newWorld(t), newSite(t)
	p := w.start(t, quick())
	code := w.send(t, "code", "ann", "r1", "r2")
	p.Say(along(ask("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}), code))
	p.Say(along(ask("r2"), code))
	want := pod.Code(code)
	want.Object = "objects/code" + code.SHA256[:8]
	for run, n := range map[string]int{"r1": 2, "r2": 1} {
		got := p.fetched(t, run)
		if len(got) != n {
			t.Fatalf("run %s has %+v", run, got)
		}
		if diff := cmp.Diff(want, got[n-1]); diff != "" {
			t.Errorf("run %s (-want +got):\n%s", run, diff)
		}
	}
	if got := w.all(t, store.KindTransfer); len(got) != 1 {
		t.Errorf("%d transfers, want that of the data set alone", len(got))
	}
	w.clean(t)
}

func TestARunWhoseCodeIsLostEndsAndSaysSo(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, quick())
	p.Say(along(ask("r1"), event.Script{SHA256: sha256Of([]byte("none")), Size: 4}))
	got := p.finished(t, "r1")
	if got.Outcome != event.Failed || got.Class != event.ClassPlatform || got.Reason != event.FetchFailed || !strings.Contains(got.Message, "send it again") {
		t.Errorf("ended as %+v", got)
	}
}

func TestCodeStaysWhileARunNeedsItOrSomebodyKeepsIt(t *testing.T) {
	w := newWorld(t)
	kept := w.send(t, "kept", "ann")
	needed, unheard := w.send(t, "needed", "", "r1"), w.send(t, "unheard", "", "r9")
	over, ghost := w.send(t, "over", "", "r2"), w.send(t, "ghost", "")
	w.pin(t, ghost.SHA256, "r3", time.Now().Add(-2*time.Hour))
	waiting := w.send(t, "waiting", "")
	w.pin(t, waiting.SHA256, "r4", time.Now().Add(-2*time.Hour))
	if err := store.Create(t.Context(), w.docs, store.KindOutbox, "r4", true); err != nil {
		t.Fatal(err)
	}
	fresh := w.send(t, "fresh", "")
	w.run(t, "r1", event.PhaseRunning)
	w.run(t, "r2", event.PhaseFinished)
	for _, code := range []event.Script{kept, needed, unheard, over, ghost, waiting} {
		w.age(t, code.SHA256, time.Hour)
	}
	for range 2 { // a pin that goes may be seen by the same sweep or by the next
		if err := w.stock(t, quick()).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		code event.Script
		want bool
	}{
		"what an owner keeps":                {kept, true},
		"what a run needs":                   {needed, true},
		"what a run needs that is not known": {unheard, true},
		"what lies in the outbox":            {waiting, true},
		"what came just now":                 {fresh, true},
		"what a run needed that is over":     {over, false},
		"what a run needed that never was":   {ghost, false},
	} {
		_, err := w.docs.Doc(t.Context(), store.KindObject, tt.code.SHA256)
		if (err == nil) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(3, len(w.all(t, store.KindPin))); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestCodeStaysForTheScheduleThatNamesItUntilThatIsDeleted(t *testing.T) {
	w := newWorld(t)
	names, named, deleted := w.send(t, "names", ""), w.send(t, "named before", ""), w.send(t, "deleted", "")
	for _, code := range []event.Script{names, named} {
		w.pin(t, code.SHA256, "s1", time.Now().Add(-2*time.Hour))
	}
	w.pin(t, deleted.SHA256, "s2", time.Now().Add(-2*time.Hour))
	for id, plan := range map[string]store.Planned{"s1": {Script: names.SHA256}, "s2": {Script: deleted.SHA256, Deleted: time.Now()}} {
		if err := store.Create(t.Context(), w.docs, store.KindSchedule, id, plan); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.stock(t, quick()).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range w.all(t, store.KindPin) {
		got = append(got, d.Key)
	}
	if diff := cmp.Diff([]string{store.PinKey(names.SHA256, "s1")}, got); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestNoLimitEvictsCodeThatARunNeedsBeforeAnybodyHearsOfIt(t *testing.T) {
	w := newWorld(t)
	code := w.send(t, "code", "ann", "r1")
	w.age(t, code.SHA256, time.Hour)
	s := quick()
	s.MaxStored, s.MaxUnused = 1, time.Minute
	if err := w.stock(t, s).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := w.start(t, s)
	p.Say(along(ask("r1"), code))
	if got := p.fetched(t, "r1"); len(got) != 1 || string(w.content(t, got[0])) != "code" {
		t.Errorf("fetched %+v", got)
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
		if got := fetcher.Unpin(tt.pin, tt.run, tt.left, noon); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
