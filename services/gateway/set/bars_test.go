package set_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// Sizes of the bar.
const (
	barCells   = 10_000
	barMetrics = 10
	barPage    = 500 // cells that baictl asks for at a time
)

// barSweep is a sweep of barCells cells of two parameters.
func barSweep() string {
	values := make([]string, barCells/100)
	for i := range values {
		values[i] = strconv.Itoa(i + 1)
	}
	list := strings.Join(values, ", ")
	return "spec_version = \"1.0\"\n[info]\ndescription = \"many cells\"\n[hardware]\ncpus = 1\nstrategy = \"single_node\"\n[env]\ndocker_image = \"x\"\n[ml]\nbenchmark_code = \"x {{size}}\"\n" +
		"[sweep.product]\nsize = [" + list + "]\n\"hardware.cpus\" = [" + list + "]\n"
}

// barStore is what the bar needs of a store.
type barStore interface {
	set.Store
	store.Runs
}

// putBarSet stores a set whose runs have ended, and returns it.
func putBarSet(t *testing.T, s barStore) (*set.Sets, *set.Runner, set.Set) {
	t.Helper()
	deps := set.Deps{
		Store: s, NewID: func(time.Time) (string, error) { return "6kq3w8r2v5m1x7d4j9thb0pzcn", nil }, Now: time.Now, Log: zap.NewNop(),
	}
	runner := set.NewRunner(set.Settings{}, deps)
	sets := set.New(deps, runner)
	text := []byte(barSweep())
	d, faults := parser.Parse("f.toml", text)
	if d == nil {
		t.Fatal(faults)
	}
	stored, _, err := sets.Put(t.Context(), submit.Request{Owner: "ann"}, &submit.SetError{Text: text, Digest: "d", Descriptor: d})
	if err != nil {
		t.Fatal(err)
	}
	plan, faults := sweep.Read(parser.Parser{}, "f.toml", text)
	if plan == nil || plan.Cells() != barCells {
		t.Fatal(faults)
	}
	begin := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(16)
	for i := range plan.Cells() {
		g.Go(func() error {
			return putBarRun(ctx, s, stored.ID, plan.Cell(i).Name, i, begin.Add(time.Duration(i)*time.Second))
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	stored.State, stored.Ended, stored.Next, stored.Counts.Succeeded = set.StateFinished, begin.Add(time.Hour), stored.Runs, stored.Runs
	if _, err := store.Replace(t.Context(), s, store.KindSet, stored.ID, 1, stored); err != nil {
		t.Fatal(err)
	}
	return sets, runner, stored
}

// putBarRun stores the run of a cell, with its summaries.
func putBarRun(ctx context.Context, s barStore, id, cell string, n int, begin time.Time) error {
	r, c := storetest.NewRun(fmt.Sprintf("01k8h4fzqh3v7x9y00%08d", n), begin)
	started, ended := begin.Add(time.Second), begin.Add(time.Minute)
	r.Phase, r.Outcome, r.Started, r.Ended, r.Descriptor = event.PhaseFinished, event.Succeeded, &started, &ended, strings.Repeat("# a descriptor\n", 30)
	r.Set, r.Cell, r.Repetition = id, cell, 1
	if err := s.PutRun(ctx, r, c); err != nil {
		return err
	}
	all := store.Summaries{Run: r.ID, Complete: true}
	for m := range barMetrics {
		v := store.Float(100 + float64((n*7+m*3)%11)/5)
		all.Summaries = append(all.Summaries, store.Summary{
			Metric: fmt.Sprint("metric", m), Unit: "B/s", Direction: event.Higher, N: 100, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v, SD: 1, First: v, Last: v,
		})
	}
	return store.Create(ctx, s, store.KindSummary, r.ID, all)
}

// TestTimeOfResults reads the results of all cells from each store, as a pivot does, and logs how long that takes, if BAI_BARS is set:
// first from the runs, then those that the Runner has stored meanwhile. The bar is for the latter, and is in test/bench.
func TestTimeOfResults(t *testing.T) {
	if os.Getenv("BAI_BARS") == "" {
		t.Skip("takes a minute on an idle machine: set BAI_BARS=1")
	}
	for name, open := range map[string]func(t *testing.T) barStore{"embedded": embedded, "Elasticsearch": onElasticsearch} {
		t.Run(name, func(t *testing.T) {
			sets, runner, stored := putBarSet(t, open(t))
			t.Logf("read from runs in %d ms", readAll(t, sets, stored).Milliseconds())
			begin := time.Now()
			for more := true; more; {
				var err error
				if more, err = runner.RollUp(t.Context(), stored.ID); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("rolled up in %d ms", time.Since(begin).Milliseconds())
			took := time.Hour
			for range 3 {
				took = min(took, readAll(t, sets, stored))
			}
			t.Logf("results of %d cells with %d metrics in %d ms", barCells, barMetrics, took.Milliseconds())
		})
	}
}

// readAll returns how long it takes to read all results of a set, page by page.
func readAll(t *testing.T, sets *set.Sets, stored set.Set) time.Duration {
	t.Helper()
	begin, cells := time.Now(), 0
	for token := ""; ; {
		page, next, err := sets.Results(t.Context(), stored, token, barPage, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			if len(c.Metrics) != barMetrics+2 { // the times of the run, too
				t.Fatalf("cell %s has %d metrics", c.Name, len(c.Metrics))
			}
		}
		if cells, token = cells+len(page), next; token == "" {
			break
		}
	}
	if cells != barCells {
		t.Fatalf("%d cells", cells)
	}
	return time.Since(begin)
}

func embedded(t *testing.T) barStore {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func onElasticsearch(t *testing.T) barStore {
	t.Helper()
	server := elasticsearch.Start(t)
	s, err := elastic.Open(elastic.Settings{Addresses: []string{server.URL}, Prefix: server.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
