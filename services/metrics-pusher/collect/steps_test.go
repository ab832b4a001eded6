package collect_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// recordStep appends records to the output of a step.
func (v volume) recordStep(t *testing.T, name string, records ...pod.Record) {
	t.Helper()
	var b []byte
	for _, r := range records {
		b = pod.AppendRecord(b, r)
	}
	v.append(t, pod.StepOutput(name), string(b))
}

func TestTheOutputOfStepsIsShippedAndNotSearched(t *testing.T) {
	v := newVolume(t)
	v.recordStep(t, "fill", stdoutRecord("loss=3\n"))
	v.record(t, stdoutRecord("loss=1\n"))
	v.exit(t, pod.Exit{})
	v.append(t, pod.StepExit("check"), `{"code": 0, "skipped": true}`)
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "loss", Pattern: `loss=(\d+)`}}
	s.Steps, s.LastStep = []string{"fill", "check"}, "check"
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.samples(), []string{"output 20.0 loss=1 at 1"})
	want(t, store.lines(), []string{"20 loss=1"})
	want(t, store.end(event.StreamStep, event.TopicLogs), event.End{Count: 1, Last: 20})
	store.complete(t)
}

func TestTheCollectorStaysUntilTheLastStepHasEnded(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\n"))
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.Steps, s.LastStep = []string{"check"}, "check"
	store := newStore(t)
	ended := start(t, s, store)
	store.waitUntil(t, func() bool { return len(store.lines()) > 0 })
	v.recordStep(t, "check", stdoutRecord("late\n"))
	v.append(t, pod.StepExit("check"), `{"code": 0}`)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want(t, store.end(event.StreamStep, event.TopicLogs), event.End{Count: 1, Last: 18})
	store.complete(t)
}
