package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// versionRuns makes 12 runs of task rates that measure one version, each with a rate near a level,
// and returns their IDs and a time shortly before the first, which is after all runs that were made before.
func (p *platform) versionRuns(version string, level int) (ids []string, begun string) {
	p.t.Helper()
	for i := range 12 {
		ids = append(ids, p.submit(script(fmt.Sprintf("for i in 1 2 3; do echo rate=%d; done", level+i*7%5),
			"[info.labels]", `task_name = "rates"`, fmt.Sprintf("version = %q", version),
			"[output]", "[[output.metrics]]", `name = "rate"`, `units = "B/s"`, `pattern = 'rate=(\d+)'`, `direction = "higher"`)))
	}
	for _, id := range ids {
		if r := p.awaitComplete(id); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			p.t.Fatalf("run %s: %s", id, r.GetMessage())
		}
	}
	return ids, p.get(ids[0]).GetCreateTime().AsTime().Add(-10 * time.Millisecond).Format(time.RFC3339Nano)
}

// A version that is 8 % slower is found where its runs begin, is worse than the baseline, and both
// stay so when the platform is killed.
func TestARegressionIsFoundInTheHistoryAndAgainstABaseline(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "6")
	_, first := p.versionRuns("v1", 1000)
	slow, second := p.versionRuns("v2", 920)
	eventually(t, func() error {
		out, errs, code := p.baictl("history", "rate", "--task", "rates", "-o", "csv")
		if n := strings.Count(out, "\n"); n != 25 || code != 0 {
			return fmt.Errorf("the history has %d lines, code %d: %s", n, code, errs)
		}
		return nil
	})
	if _, errs, code := p.baictl("baseline", "set", "good", "rates@"+first+".."+second, "--reason", "version 1"); code != 0 {
		t.Fatalf("baseline set: %s", errs)
	}
	before := p.findRegression(slow[0], second)
	p.kill()
	p.begin()
	if after := p.findRegression(slow[0], second); !proto.Equal(before, after) {
		t.Errorf("before the kill %v, after it %v", before, after)
	}
}

// findRegression returns how the runs since a time compare with baseline good, once it has checked that
// they are worse, and that the history changes at a run.
func (p *platform) findRegression(run, since string) *baiv1.SeriesComparison {
	p.t.Helper()
	out, errs, code := p.baictl("changes", "--task", "rates", "--metric", "rate", "--fail", "-o", "json")
	var found struct {
		Series []struct {
			Changes []struct {
				Verdict       string
				Run           string
				VersionBefore string `json:"version_before"`
				VersionAfter  string `json:"version_after"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 6 || len(found.Series) != 1 {
		p.t.Fatalf("changes: code %d, %v: %s%s", code, err, out, errs)
	}
	if got, want := fmt.Sprint(found.Series[0].Changes), fmt.Sprint("[{regression ", run, " v1 v2}]"); got != want {
		p.t.Errorf("changes: %s, want %s", got, want)
	}
	if _, errs, code := p.baictl("compare", "baseline:good", "rates@"+since, "--metric", "rate"); code != 6 {
		p.t.Errorf("compare: code %d: %s", code, errs)
	}
	c, err := baiv1.NewAnalysisServiceClient(p.conn).CompareRuns(p.t.Context(), &baiv1.CompareRunsRequest{Old: "baseline:good", New: "rates@" + since, Metrics: []string{"rate"}})
	if err != nil {
		p.t.Fatal(err)
	}
	s := c.GetSeries()[0]
	if change := s.GetChange().GetValue(); s.GetVerdict() != "worse" || change < -0.1 || change > -0.06 || s.GetOld().GetSamples() != 36 {
		p.t.Errorf("%v", s)
	}
	return s
}
