package follow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// skewed is a descriptor with a key of a newer release.
const skewed = "quantum = true\n" + descriptor

// statuses returns the reasons and messages of all statuses.
func (w fixture) statuses() (all []string) {
	w.fakeBus.mu.Lock()
	defer w.fakeBus.mu.Unlock()
	for _, e := range w.published {
		if s, ok := e.(event.Status); ok {
			all = append(all, string(s.Reason)+" "+s.Message)
		}
	}
	return all
}

func TestANewerReleaseFindsTheSamplesOfALogThatAnOlderOneCouldNotRead(t *testing.T) {
	t.Parallel()
	w := newFixtureOf(t, newFakeCluster(logLine(time.Second, "n=1")), skewed)
	kill := w.process(t, "older")
	until(t, "the word that it waits", func() bool { return len(w.statuses()) > 0 })
	kill()
	if got := w.stored(); len(got.Lines) > 0 || len(w.statuses()) != 1 || !strings.HasPrefix(w.statuses()[0], "VersionSkew the output is not read yet: waiting for a newer follower of logs, 10m0s at most") {
		t.Errorf("%d lines, told %q", len(got.Lines), w.statuses())
	}
	r, err := w.store.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	r.Descriptor, r.Revision = descriptor, r.Revision+1 // as a newer release reads it
	if err := w.store.PutRun(t.Context(), r, store.Change{Run: run, Revision: r.Revision, Event: "e2", Topic: event.TopicLaunched, Time: podCreated(), Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	w.process(t, "newer")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	if got := w.stored(); len(got.Samples) != 1 || got.End.Reason != "" {
		t.Errorf("%q, %+v", got.Samples, got.End)
	}
	until(t, "nothing aside", func() bool {
		docs, err := w.store.Docs(t.Context(), store.KindLogProgress, "unread/", 1)
		return err == nil && len(docs) == 0
	})
}

func TestALogForWhichNoNewerReleaseComesIsKeptWithoutSamplesAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newFixtureOf(t, newFakeCluster(logLine(time.Second, "n=1")), skewed+"[limits]\npending_deadline = \"1s\"\n")
	w.process(t, "older")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	got, statuses := w.stored(), w.statuses()
	if len(got.Lines) != 1 || len(got.Samples) > 0 || !strings.Contains(got.End.Reason, "no samples were looked for") {
		t.Errorf("%q, %q, %+v", got.Lines, got.Samples, got.End)
	}
	if len(statuses) < 2 || !strings.Contains(statuses[len(statuses)-1], "VersionSkew the output is stored, but no samples are looked for in it") || !strings.Contains(statuses[len(statuses)-1], "quantum") {
		t.Errorf("told %q", statuses)
	}
}
