package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestARunBringsItsLogAndItsMetrics(t *testing.T) {
	t.Parallel()
	p := start(t)
	run := p.submit(script(`
echo one; echo two >&2; echo "speed=12.5 MB/s"
echo '{"loss": 0.25}' >>"$BENCHMARK_AI_FILE"
`, `[[output.metrics]]
name = "speed"
units = "MB/s"
pattern = 'speed=([0-9.]+)'`))
	r := p.awaitComplete(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v", r)
	}
	if diff := cmp.Diff(map[string][]float64{"speed": {12.5}, "loss": {0.25}}, p.samples(run)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if got := p.lines(run); len(got) != 3 {
		t.Errorf("lines: %q, want 3", got)
	}
}

// compression is the sample's descriptor with its data at an address. A repetition packs
// one copy, not four: these times do not matter.
func compression(t *testing.T, url string) string {
	t.Helper()
	text, err := os.ReadFile("../../../sample-benchmarks/compression/descriptor.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "copies=4") {
		t.Fatal("the sample does not say how many copies it packs")
	}
	return strings.NewReplacer("http://127.0.0.1:8000", url, "copies=4", "copies=1").Replace(string(text))
}

func TestTheSampleMeasuresWhatGzipDoes(t *testing.T) {
	t.Parallel()
	p := start(t)
	data := httptest.NewServer(http.FileServer(http.Dir("../../../sample-benchmarks/compression")))
	defer data.Close()
	run := p.submit(compression(t, data.URL))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
	}
	samples := p.samples(run)
	for level := range map[int]bool{1: true, 6: true, 9: true} {
		for metric, n := range map[string]int{"compress": 5, "decompress": 5, "ratio": 1} {
			if got := len(samples[fmt.Sprintf("%s_level_%d", metric, level)]); got != n {
				t.Errorf("%s at level %d: %d samples, want %d", metric, level, got, n)
			}
		}
	}
	if want, got := gzipSizes(t), samples["packed_size"]; !cmp.Equal(want, got) {
		t.Errorf("packed sizes %v, but gzip makes %v", got, want)
	}
}

func TestFiftyEqualSubmitsUnderOneKeyAreOneRun(t *testing.T) {
	t.Parallel()
	p := start(t)
	ask := func(descriptor string) (id string, err error) {
		err = context.DeadlineExceeded
		for late := true; late && t.Context().Err() == nil; late = status.Code(err) == codes.DeadlineExceeded { // a busy store: the same key is asked again
			var r *baiv1.SubmitRunResponse
			r, err = p.api.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{
				DescriptorToml: []byte(descriptor), Owner: "tester", IdempotencyKey: "once",
			})
			id = r.GetRunId()
		}
		return id, err
	}
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		ids = make(map[string]int)
	)
	for range 50 {
		wg.Go(func() {
			id, err := ask(command("true"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[id]++
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Errorf("runs: %v, want one", ids)
	}
	if _, err := ask(command("false")); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another descriptor under the key: %v, want ALREADY_EXISTS", err)
	}
	list, err := p.api.ListRuns(t.Context(), &baiv1.ListRunsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list.GetRuns()); n > 1 {
		t.Errorf("%d runs, want one", n)
	}
	for id := range ids {
		p.awaitEnd(id)
	}
}

func TestCancelEndsARunWhereverItIs(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		for {
			if _, err := w.Write(make([]byte, 100)); err != nil {
				return
			}
			flush(w)
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(slow.Close)
	p := start(t, "--slots", "1")
	sleeper := script("exec sleep 600")
	for name, tt := range map[string]struct {
		descriptor string
		when       baiv1.Phase
	}{
		"while it fetches": {script("true", fmt.Sprintf("[[data.sources]]\nsrc = \"%s/x\"\npath = \"/data/x\"", slow.URL)), baiv1.Phase_PHASE_FETCHING},
		"at once":          {sleeper, baiv1.Phase_PHASE_SUBMITTED},
		"while it starts":  {sleeper, baiv1.Phase_PHASE_LAUNCHING},
		"while it runs":    {sleeper, baiv1.Phase_PHASE_RUNNING},
	} {
		run := p.submit(tt.descriptor)
		if tt.when != baiv1.Phase_PHASE_SUBMITTED {
			p.awaitPhase(run, tt.when, baiv1.Phase_PHASE_RUNNING)
		}
		p.cancel(run)
		if r := p.awaitEnd(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED {
			t.Errorf("canceled %s: %v", name, r)
		}
		wantNoPod(t, p, run)
	}
	p.cancelInTheQueue(sleeper)
}

// cancelInTheQueue checks that a run that waits is canceled without ever having
// been started, and that a slot is free only after its holder is gone.
func (p *platform) cancelInTheQueue(sleeper string) {
	t := p.t
	t.Helper()
	holder := p.submit(sleeper)
	p.awaitPhase(holder, baiv1.Phase_PHASE_RUNNING)
	waiting, next := p.submit(sleeper), p.submit(script("true"))
	p.awaitPhase(waiting, baiv1.Phase_PHASE_QUEUED)
	p.cancel(waiting)
	if r := p.awaitEnd(waiting); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED || r.GetStartTime() != nil {
		t.Errorf("canceled in the queue: %v", r)
	}
	if r := p.get(next); r.GetPhase() > baiv1.Phase_PHASE_QUEUED {
		t.Errorf("started while the slot was held: %v", r)
	}
	p.cancel(holder)
	if r := p.awaitEnd(next); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("the next in the queue: %v", r)
	}
	if over, began := p.get(holder).GetEndTime().AsTime(), p.get(next).GetStartTime().AsTime(); began.Before(over) {
		t.Errorf("the next began at %s, before its slot's holder was over at %s", began, over)
	}
	p.cancel(next) // after the end: nothing changes
	if r := p.get(next); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("canceled after the end: %v", r)
	}
}

func (p *platform) cancel(run string) {
	p.t.Helper()
	if _, err := p.api.CancelRun(p.t.Context(), &baiv1.CancelRunRequest{Run: run}); err != nil {
		p.t.Fatalf("cancel %s: %v", run, err)
	}
}

// wantNoPod checks that the run has no process.
func wantNoPod(t *testing.T, p *platform, run string) {
	t.Helper()
	eventually(t, func() error {
		for _, process := range processesOf(filepath.Join(p.dir, "pods")) {
			if strings.Contains(process, run) {
				return fmt.Errorf("left of %s: %s", run, process)
			}
		}
		return nil
	})
}
