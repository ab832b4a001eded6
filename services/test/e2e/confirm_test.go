package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// confirmed returns the descriptor of a task whose incidents are confirmed by runs.
func confirmed(version, text string) string {
	return strings.Replace(watched(version, 1), "for i in 1 2 3; do echo rate=1; done", text, 1) + "[alarms.confirm]\n"
}

// openStore opens the store of a platform beside it.
func openStore(t *testing.T, p *platform) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(p.dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// awaitIncident waits until the only incident is in a state.
func awaitIncident(t *testing.T, s *sqlite.Store, state incident.State) (i incident.Incident) {
	t.Helper()
	eventually(t, func() error {
		all := alarmDocs[incident.Incident](t, s, store.KindIncident)
		if len(all) != 1 || all[0].State != state {
			return fmt.Errorf("incidents: %s", describe(all))
		}
		i = all[0]
		return nil
	})
	return i
}

// awaitNoRequests waits until no runs are asked for any more.
func awaitNoRequests(t *testing.T, s *sqlite.Store) {
	t.Helper()
	eventually(t, func() error {
		if all := alarmDocs[confirm.Request](t, s, store.KindConfirmation); len(all) > 0 {
			return fmt.Errorf("requests: %+v", all)
		}
		return nil
	})
}

// A version that is slower is confirmed by runs of both versions, also where the platform is killed meanwhile, before anybody is notified.
func TestARegressionIsConfirmedByRunsBeforeItsOneNotice(t *testing.T) {
	t.Parallel()
	hook, config := startWebhook(t)
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "6", "--config", config)
	s := openStore(t, p)
	for _, level := range []int{1000, 920} {
		var ids []string
		for n := range 12 {
			ids = append(ids, p.submit(confirmed(fmt.Sprint("v", level), fmt.Sprintf("echo rate=%d", level+n*7%5))))
		}
		for _, id := range ids {
			p.awaitComplete(id)
		}
	}
	eventually(t, func() error {
		if all := alarmDocs[confirm.Progress](t, s, store.KindConfirmationRuns); len(all) != 1 || len(all[0].Runs) < 3 {
			return fmt.Errorf("runs: %+v", all)
		}
		return nil
	})
	if ids, _ := hook.took(); len(ids) > 0 {
		t.Errorf("notices before the verdict: %q", ids)
	}
	p.kill()
	p.begin()
	i := awaitIncident(t, s, incident.Firing)
	c := i.Confirmation
	if c == nil || c.Verdict != incident.VerdictConfirmed || len(c.Runs) != 10 || i.Cause != incident.CauseRegression {
		t.Fatalf("cause %s: %+v", i.Cause, c)
	}
	ended := time.Time{}
	for n, r := range c.Runs {
		run := p.get(r.Run)
		if run.GetLineage().GetConfirms() != i.ID || run.GetLabels()["confirms"] != i.ID || run.GetCreateTime().AsTime().Before(ended) {
			t.Errorf("run %d: %v", n, run)
		}
		ended = run.GetEndTime().AsTime()
	}
	hook.await(t)
	awaitNoRequests(t, s)
	notices := alarmDocs[notice.Delivery](t, s, store.KindDelivery)
	wantNotice(t, notices)
	hook.wantOnly(t, notices)
}

// awaitAnalysed waits until a run was analysed. The rules of its task are updated first: what follows takes less than ten looks.
func awaitAnalysed(t *testing.T, p *platform, s *sqlite.Store, run string) {
	t.Helper()
	created, looks := p.get(run).GetCreateTime().AsTime(), 0
	eventually(t, func() error {
		rules := alarmDocs[incident.RuleSet](t, s, store.KindRuleSet)
		if len(rules) == 1 && !rules[0].Newest.Before(created) {
			looks++
		}
		if looks < 10 {
			return fmt.Errorf("rules: %+v", rules)
		}
		return nil
	})
}

// Slow runs of a version that is as fast as the one before it are noise.
func TestNoiseIsDismissedByRunsWithoutANotice(t *testing.T) {
	t.Parallel()
	hook, config := startWebhook(t)
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "6", "--config", config)
	s := openStore(t, p)
	runs, slow := t.TempDir(), filepath.Join(t.TempDir(), "slow")
	text := fmt.Sprintf(`touch %s/$(date +%%s%%N); n=$(ls %s | wc -l)
if rm %s 2>/dev/null; then echo rate=$((920 + n %% 5)); else echo rate=$((1000 + n %% 5)); fi`, runs, runs, slow)
	for range 12 {
		p.awaitComplete(p.submit(confirmed("v1", text)))
	}
	for n := 0; n < 20 && len(alarmDocs[incident.Incident](t, s, store.KindIncident)) == 0; n++ {
		if err := os.WriteFile(slow, nil, 0o600); err != nil { // the run takes it away: runs that confirm are fast
			t.Fatal(err)
		}
		run := p.submit(confirmed("v2", text))
		p.awaitComplete(run)
		awaitAnalysed(t, p, s, run)
	}
	i := awaitIncident(t, s, incident.Dismissed)
	if c := i.Confirmation; c == nil || c.Verdict != incident.VerdictNoise || i.Cause != incident.CauseNoise {
		t.Errorf("cause %s: %+v", i.Cause, c)
	}
	awaitNoRequests(t, s)
	ids, _ := hook.took()
	if notices := alarmDocs[notice.Delivery](t, s, store.KindDelivery); len(notices) > 0 || len(ids) > 0 {
		t.Errorf("notices %q, deliveries %+v", ids, notices)
	}
}
