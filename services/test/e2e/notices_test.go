package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// The user who submits a run or a set hears of the end once, also where the platform is killed meanwhile; and a receiver can be tested.
func TestSubmittersAreNotifiedOfTheEndsOfTheirRunsAndSetsOnce(t *testing.T) {
	t.Parallel()
	hook, config := startWebhook(t, `owners = ["*"]`)
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "4", "--config", config)
	if stdout, stderr, code := p.baictl("alarms", "test", "perf"); code != 0 || !strings.Contains(stdout, "receiver perf took the test") {
		t.Errorf("alarms test perf: exit %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code := p.baictl("alarms", "test", "nobody"); code != 2 || !strings.Contains(stderr, "it may use perf") {
		t.Errorf("alarms test nobody: exit %d: %s", code, stderr)
	}
	rate := script("echo rate=42", "[info.labels]", `task_name = "rates"`, "[output]", "[[output.metrics]]", `name = "rate"`, `units = "B/s"`, `pattern = 'rate=(\d+)'`)
	sizes := script("echo {{n}}", "[info.labels]", `task_name = "sizes"`, "[sweep.product]", "n = [1, 2]")
	for _, text := range []string{rate, sizes, script("exit 3", "[info.labels]", `task_name = "fails"`)} {
		if _, stderr, code := p.baictl("submit", writeTemp(t, text), "--notify", "submitter"); code != 0 {
			t.Fatalf("submit: exit %d: %s", code, stderr)
		}
	}
	p.kill()
	p.begin()
	s, err := sqlite.Open(t.Context(), filepath.Join(p.dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	want := []string{
		"run of fails failed sent, NonZeroExit", "run of rates succeeded sent, rate 42", "set of sizes succeeded sent, 2 runs", "test sent",
	}
	eventually(t, func() error {
		if got := ends(t, s); !slices.Equal(got, want) {
			return fmt.Errorf("notices are %q, want %q", got, want)
		}
		return nil
	})
	p.kill()
	p.args = append(p.args, "--replay") // every event is heard again
	p.begin()
	p.awaitComplete(p.submit(script("true")))
	if got := ends(t, s); !slices.Equal(got, want) {
		t.Errorf("after a replay the notices are %q, want %q", got, want)
	}
	if ids, faults := hook.took(); len(faults) > 0 || len(ids) < 4 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 4 {
		t.Errorf("the webhook has %q, faults %q", ids, faults)
	}
}

// ends describes the notices of ends and tests, in order.
func ends(t *testing.T, s store.Lister) (all []string) {
	t.Helper()
	for _, d := range alarmDocs[notice.Delivery](t, s, store.KindDelivery) {
		if d.Notice.Test {
			all = append(all, "test "+string(d.Status))
		}
		for _, e := range d.Notice.Ends {
			text := fmt.Sprintf("run of %s %s %s", e.Task, e.Outcome, d.Status)
			switch {
			case e.Set:
				text = fmt.Sprintf("set of %s %s %s, %d runs", e.Task, e.Outcome, d.Status, e.Runs.Succeeded)
			case e.Reason != "":
				text += ", " + string(e.Reason)
			case len(e.Numbers) > 0:
				text += fmt.Sprintf(", %s %g", e.Numbers[0].Metric, e.Numbers[0].Value)
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}
