package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// startPriced starts a platform with prices of three instance types.
func startPriced(t *testing.T) *platform {
	t.Helper()
	config := writeTemp(t, "[prices]\n\"m5.large\" = \"3600 USD\"\n\"r5.large\" = \"3600 USD\"\n\"c5.large\" = \"36000000 USD\"\n")
	return startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "3", "--config", config)
}

// priced returns a descriptor that prints a number of images on a machine of an instance type.
func priced(instanceType string) string {
	text := script("echo images=500; echo images=1000",
		"[info.labels]", `task_name = "priced"`, "[cost]", `per = ["images"]`,
		"[output]", "[[output.metrics]]", `name = "images"`, `units = "images"`, `pattern = 'images=(\d+)'`,
		"[[alarms]]", `metric = "cost.per.images"`, `when = "regression"`, `min_change = "5%"`)
	return strings.Replace(text, `"t3.small"`, fmt.Sprintf("%q", instanceType), 1)
}

// summariesOf returns the summaries of a run, once they are there.
func (p *platform) summariesOf(run string) (all *baiv1.GetSummariesResponse) {
	p.t.Helper()
	p.awaitComplete(run)
	eventually(p.t, func() (err error) {
		all, err = baiv1.NewResultServiceClient(p.conn).GetSummaries(p.t.Context(), &baiv1.GetSummariesRequest{Run: run})
		if err == nil && all.GetPending() {
			err = fmt.Errorf("run %s has no summary", run)
		}
		return err
	})
	return all
}

// valueOf returns the median of a metric without labels, and its unit.
func valueOf(all *baiv1.GetSummariesResponse, metric string) (value float64, unit string) {
	for _, m := range all.GetSummaries() {
		if m.GetMetric() == metric && len(m.GetLabels()) == 0 {
			return m.GetMedian(), m.GetUnit()
		}
	}
	return 0, ""
}

// A run costs the price of its machine for the time from the binding of its pod to the end, whatever becomes of its platform.
func TestARunCostsTheTimeOfItsMachine(t *testing.T) {
	t.Parallel()
	p := startPriced(t)
	id := p.submit(priced("m5.large"))
	all := p.summariesOf(id)
	amount, unit := valueOf(all, "cost.amount")
	per, _ := valueOf(all, "cost.per.images")
	s, err := sqlite.Open(t.Context(), filepath.Join(p.dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	run, err := s.Run(t.Context(), id)
	if err != nil || len(run.Machines[1]) != 1 {
		t.Fatalf("machines: %+v, %v", run.Machines, err)
	}
	use := run.Machines[1][0]
	took := use.Until.Sub(use.From)
	want, _ := new(big.Rat).SetFrac64(int64(took), int64(time.Second)).Float64() // 1 USD a second
	if amount != want || unit != "USD" || per != amount/1000 || use.InstanceType != "m5.large" || took <= 0 {
		t.Errorf("%v %s, %v for an image, of %+v, want %v USD", amount, unit, per, use, want)
	}
	if run.Ended.Before(use.From) || use.Until.Sub(*run.Ended) > time.Minute {
		t.Errorf("the run ended at %s, its machine was used from %s to %s", run.Ended, use.From, use.Until)
	}
	out, errs, code := p.baictl("get", id)
	if !strings.Contains(out, "cost.amount: ") || code != 0 {
		t.Errorf("get: %s%s", out, errs)
	}
}

// A price that is not known leaves the cost out, and says why; the descriptor may give one.
func TestACostWithoutAPriceIsAbsentWithTheReason(t *testing.T) {
	t.Parallel()
	p := startPriced(t)
	unknown := p.summariesOf(p.submit(priced("x9.huge")))
	if _, unit := valueOf(unknown, "cost.amount"); unit != "" || len(unknown.GetUnknown()) != 4 ||
		!strings.Contains(unknown.GetUnknown()[0].GetReason(), "no price of instance type x9.huge") {
		t.Errorf("%v", unknown.GetUnknown())
	}
	descriptor := strings.Replace(priced("x9.huge"), `"x9.huge"`, "\"x9.huge\"\nprice_per_hour = \"7200 EUR\"", 1)
	if amount, unit := valueOf(p.summariesOf(p.submit(descriptor)), "cost.amount"); unit != "EUR" || amount <= 0 {
		t.Errorf("%v %s", amount, unit)
	}
}

// Machines are ranked by what a result costs on them; two that cost the same cannot be told apart. The results of each machine spread by far
// more than the times of its runs: twice as many with each repetition.
func TestMachinesAreRankedByTheCostOfAResult(t *testing.T) {
	t.Parallel()
	p := startPriced(t)
	var ids []string
	for repetition := range 6 {
		images := fmt.Sprintf("images=%d", 1000<<repetition)
		for _, instanceType := range []string{"m5.large", "r5.large", "c5.large"} {
			ids = append(ids, p.submit(strings.Replace(priced(instanceType), "images=1000", images, 1)))
		}
	}
	for _, id := range ids {
		p.summariesOf(id)
	}
	var found struct {
		Series []struct {
			Unit   string
			Groups []struct {
				Value string
				Best  bool
				Alike []int
			}
		}
	}
	eventually(t, func() error {
		found.Series = nil
		out, errs, code := p.baictl("compare", "task:priced", "--by", "hardware.instance_type", "--metric", "cost.per.images", "-o", "json")
		if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 || len(found.Series) != 1 || len(found.Series[0].Groups) != 3 {
			return fmt.Errorf("code %d: %s%s", code, out, errs)
		}
		return nil
	})
	groups := found.Series[0].Groups
	if found.Series[0].Unit != "USD" || groups[2].Value != "c5.large" || groups[2].Best || len(groups[2].Alike) > 0 {
		t.Errorf("%+v", found)
	}
	if fmt.Sprint(groups[0].Alike, groups[1].Alike) != "[1] [0]" {
		t.Errorf("the two machines of one price are told apart: %+v", groups)
	}
	if _, errs, code := p.baictl("submit", writeTemp(t, priced("c5.large"))); code != 0 || errs != "" {
		t.Errorf("submit, in a pipe, exits with %d and says %q", code, errs)
	}
}

// A GPU of constant power, as nvidia-smi prints it, has used that power times the time of its samples.
func TestTheEnergyOfAGPUIsItsPowerTimesTheTime(t *testing.T) {
	t.Parallel()
	p := startPriced(t)
	dir := t.TempDir()
	fake := "#!/bin/sh\nwhile :; do echo '0, 50, 100, 250'; sleep 0.1; done\n"
	tooltest.WriteProgram(t, filepath.Join(dir, "nvidia-smi"), fake)
	text := script("sleep 4", "[env.vars]", fmt.Sprintf("PATH = %q", dir+":/usr/local/bin:/usr/bin:/bin"))
	all := p.summariesOf(p.submit(text))
	joules, unit := valueOf(all, "energy.joules")
	if unit != "J" || joules < 250 || joules > 1250 {
		t.Errorf("%v %s: %v", joules, unit, all)
	}
}
