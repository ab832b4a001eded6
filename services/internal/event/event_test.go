package event_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestCause(t *testing.T) {
	h := event.NewHeader("m1", "r1", "pets", "ann", time.Unix(0, 0).UTC())
	h.Set, h.PublishedAt = "s1", time.Unix(5, 0)
	base := h.Cause("status", "1/3")
	retried := h
	retried.Attempt = 2

	if second := h.Cause("status", "1/3"); second != base {
		t.Errorf("the same fact again: %+v, want %+v", second, base)
	}
	want := h
	want.ID, want.PublishedAt = base.ID, time.Time{}
	if base != want {
		t.Errorf("all but the ID is the cause's: %+v, want %+v", base, want)
	}
	for name, other := range map[string]event.Header{
		"another subject":                   h.Cause("status", "2/3"),
		"another kind":                      h.Cause("fetched", "1/3"),
		"another attempt":                   retried.Cause("status", "1/3"),
		"another cause":                     base.Cause("status", "1/3"),
		"the same letters, split elsewhere": h.Cause("status1", "/3"),
	} {
		if other.ID == base.ID {
			t.Errorf("%s: the same ID", name)
		}
	}
}

func TestSourcesHaveTheirOwnIDs(t *testing.T) {
	s := event.Stream{Role: "worker", Pod: "u1", Container: "benchmark", Kind: event.StreamOutput}
	seen := make(map[string]string)
	for name, id := range map[string]string{
		"the source":        s.ID("r1", 1),
		"another run":       s.ID("r2", 1),
		"another attempt":   s.ID("r1", 2),
		"another role":      event.Stream{Role: "launcher", Pod: "u1", Container: "benchmark", Kind: event.StreamOutput}.ID("r1", 1),
		"another index":     event.Stream{Role: "worker", Index: 1, Pod: "u1", Container: "benchmark", Kind: event.StreamOutput}.ID("r1", 1),
		"another pod":       event.Stream{Role: "worker", Pod: "u2", Container: "benchmark", Kind: event.StreamOutput}.ID("r1", 1),
		"another container": event.Stream{Role: "worker", Pod: "u1", Container: "server", Kind: event.StreamOutput}.ID("r1", 1),
		"another stream":    event.Stream{Role: "worker", Pod: "u1", Container: "benchmark", Kind: event.StreamMetrics}.ID("r1", 1),
	} {
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s share an ID", name, other)
		}
		seen[id] = name
	}
}

func TestASampleKeepsEveryValue(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1.5, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1)} {
		s := event.Sample{Special: "left over"}
		s.Set(v)
		if got := s.Float(); math.Float64bits(got) != math.Float64bits(v) && !(math.IsNaN(got) && math.IsNaN(v)) {
			t.Errorf("Set(%v) then Float: %v", v, got)
		}
		if (s.Value == nil) == (s.Special == "") {
			t.Errorf("Set(%v): value %v, special %q: want one of them", v, s.Value, s.Special)
		}
	}
}

func TestPhasesAndTopicsAreListedOnce(t *testing.T) {
	phases := make(map[event.Phase]bool)
	for _, p := range event.Phases() {
		if phases[p] {
			t.Errorf("phase %s is listed twice", p)
		}
		phases[p] = true
	}
	topics := make(map[string]bool)
	for _, topic := range event.Topics() {
		if topics[topic] || !strings.HasPrefix(topic, "bai.") {
			t.Errorf("topic %s: listed twice, or not ours", topic)
		}
		topics[topic] = true
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	header := []string{"schema: 0, want 1", "attempt: 0, want 1 or more", "time: must not be empty", "id: must", "run: must", "namespace: must", "owner: must"}
	source := []string{"source.role", "source.pod", "source.container", "source.stream"}
	h := event.NewHeader("m1", "r1", "pets", "ann", time.Unix(0, 0))
	from := event.Stream{Role: "benchmark", Pod: "u", Container: "c", Kind: event.StreamOutput}
	for name, tt := range map[string]struct {
		ev   event.Event
		want []string
	}{
		"submitted":                   {event.Submitted{}, append([]string{"descriptor"}, header...)},
		"command":                     {event.Command{}, append([]string{"kind"}, header...)},
		"fetched":                     {event.Fetched{}, append([]string{"descriptor"}, header...)},
		"launched":                    {event.Launched{}, append([]string{"job"}, header...)},
		"the first attempt, retried":  {event.Retried{Header: h}, []string{"attempt: 1, want 2 or more"}},
		"status":                      {event.Status{}, append([]string{"phase"}, header...)},
		"finished":                    {event.Finished{}, append([]string{"outcome"}, header...)},
		"a failure without its fault": {event.Finished{Header: h, Outcome: event.Failed}, []string{"class", "reason"}},
		"summarised":                  {event.Summarised{}, header},
		"a revision below none":       {event.Summarised{Header: h, Revision: -1}, []string{"revision: -1, want 0 or more"}},
		"metrics":                     {event.Metrics{}, append(source, header...)},
		"a sample of nothing":         {event.Metrics{Header: h, Stream: from, Samples: []event.Sample{{}}}, []string{"samples[0].name", "samples[0].value: null without a special"}},
		"logs":                        {event.Logs{}, append(source, header...)},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.ev.Validate()
			if err == nil {
				t.Fatal("valid")
			}
			if got := countNamed(err, tt.want); got != len(tt.want) {
				t.Errorf("Validate: %v, want %q", err, tt.want)
			}
		})
	}
}

// countNamed counts the faults in err that begin with one of want.
func countNamed(err error, want []string) (n int) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(line, w) }) {
			n++
		}
	}
	return n
}
