package analyst_test

import (
	"context"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// midwayStore is a store in which something happens after the first incident is stored.
type midwayStore struct {
	analyst.Store

	do func()
}

// CreateDoc implements store.DocWriter.
func (m *midwayStore) CreateDoc(ctx context.Context, d store.Doc) error {
	err := m.Store.CreateDoc(ctx, d)
	if do := m.do; do != nil && d.Kind == store.KindIncident {
		m.do = nil
		do()
	}
	return err
}

func TestAClockThatStrikesAmidAnAnalysisNotifiesOfNoPartOfIt(t *testing.T) {
	w := newFixture(t)
	strict := strings.Replace(tooSlow, "100", "110", 1)
	for _, rate := range []float64{120, 90, 91, 120, 121, 122, 90} { // one incident of each alarm has ended a short time ago
		w.deliver(nil, w.put(descriptor(tooSlow, strict), rate))
	}
	steps := &stepRecorder{}
	d := w.deps(&midwayStore{w.store, w.tick})
	d.Bus = steps
	analyst.New(analyst.Settings{}, d)
	if err := handle(t.Context(), steps.of[event.TopicSummarised], w.put(descriptor(tooSlow, strict), 91)); err != nil {
		t.Fatal(err)
	}
	want(t, "notices", []string{
		"ops firing 2 and 0 more", "ops firing 2 and 0 more", "ops resolved 2 and 0 more",
		"perf firing 2 and 0 more", "perf firing 2 and 0 more", "perf resolved 2 and 0 more",
	}, w.sizes())
}
