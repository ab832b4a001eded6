package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// watched returns the descriptor of a task that prints a rate and has an alarm about it.
func watched(version string, rate int) string {
	return script(fmt.Sprintf("for i in 1 2 3; do echo rate=%d; done", rate),
		"[info.labels]", `task_name = "watched"`, fmt.Sprintf("version = %q", version),
		"[output]", "[[output.metrics]]", `name = "rate"`, `units = "B/s"`, `pattern = 'rate=(\d+)'`, `direction = "higher"`,
		"[[alarms]]", `metric = "rate"`, `when = "regression"`, `min_change = "2%"`, `notify = ["perf"]`)
}

// runWatched makes 12 runs of a version of the task.
func (p *platform) runWatched(version string, level int) {
	p.t.Helper()
	ids := make([]string, 12)
	for i := range ids {
		ids[i] = p.submit(watched(version, level+i*7%5))
	}
	for _, id := range ids {
		p.awaitComplete(id)
	}
}

// alarmDocs returns the documents of a kind in the platform's store.
func alarmDocs[T any](t *testing.T, s store.Lister, kind store.Kind) (all []T) {
	t.Helper()
	for d, err := range store.All[T](t.Context(), s, kind, "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d.Value)
	}
	return all
}

// webhook takes signed notices.
type webhook struct {
	*httptest.Server

	mu     sync.Mutex
	ids    []string
	faults []string
}

const webhookSecret = "a secret of at least 24 bytes"

// startWebhook starts a webhook, and returns a file of settings in which it is the receiver perf, with further keys.
func startWebhook(t *testing.T, keys ...string) (hook *webhook, config string) {
	t.Helper()
	hook = &webhook{}
	hook.Server = httptest.NewServer(hook)
	t.Cleanup(hook.Close)
	secret := writeTemp(t, webhookSecret)
	return hook, writeTemp(t, fmt.Sprintf("[receivers.perf]\nkind = \"webhook\"\nurl = %q\nsecret_file = %q\n%s\n", hook.URL, secret, strings.Join(keys, "\n")))
}

// ServeHTTP implements http.Handler.
func (w *webhook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	id := r.Header.Get("Webhook-Id")
	at, errTime := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	if want := post.Signed([]byte(webhookSecret), id, time.Unix(at, 0), body)["Webhook-Signature"]; err != nil || errTime != nil || r.Header.Get("Webhook-Signature") != want {
		w.faults = append(w.faults, fmt.Sprintf("%s is not signed: %s", id, body))
	}
	w.ids = append(w.ids, id)
}

// took returns the IDs of the notices that came, and what was wrong with them.
func (w *webhook) took() (ids, faults []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.ids...), append([]string(nil), w.faults...)
}

// await waits for a notice.
func (w *webhook) await(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		if ids, _ := w.took(); len(ids) == 0 {
			return errors.New("the webhook has no notice")
		}
		return nil
	})
}

// wantOnly reports notices that are not the one, and those that were wrong. A kill between the answer and its record has the one come twice.
func (w *webhook) wantOnly(t *testing.T, notices []notice.Delivery) {
	t.Helper()
	ids, faults := w.took()
	for _, id := range ids {
		if len(notices) != 1 || id != notices[0].Notice.ID {
			faults = append(faults, id+" is another notice")
		}
	}
	if len(ids) > 2 || len(faults) > 0 {
		t.Errorf("the webhook has %q, faults %q", ids, faults)
	}
}

// wantNotice reports documents that are not those of one notice, for perf.
func wantNotice(t *testing.T, notices []notice.Delivery) {
	t.Helper()
	if len(notices) != 1 || notices[0].Notice.Receiver != "perf" || notices[0].Notice.Became != incident.Firing {
		t.Errorf("deliveries: %+v", notices)
	}
}

// A version that is 30 % slower is one incident, which fires once, also where the platform is killed meanwhile.
func TestARegressionIsOneIncidentAndOneNotice(t *testing.T) {
	t.Parallel()
	hook, config := startWebhook(t)
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "6", "--config", config)
	p.runWatched("v1", 1000)
	first := p.submit(watched("v2", 700))
	p.awaitComplete(first)
	for range 4 {
		p.submit(watched("v2", 701))
	}
	p.kill()
	p.begin()
	p.runWatched("v2", 700)
	s, err := sqlite.Open(t.Context(), filepath.Join(p.dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, func() error {
		all := alarmDocs[incident.Incident](t, s, store.KindIncident)
		if len(all) != 1 || all[0].State != incident.Firing {
			return fmt.Errorf("incidents: %s", describe(all))
		}
		return nil
	})
	hook.await(t)
	p.kill()
	p.args = append(p.args, "--replay") // every event is heard again
	p.begin()
	last := p.submit(watched("v2", 702))
	p.awaitComplete(last)
	created := p.get(last).GetCreateTime().AsTime()
	eventually(t, func() error {
		rules := alarmDocs[incident.RuleSet](t, s, store.KindRuleSet)
		if len(rules) != 1 || rules[0].Newest.Before(created) {
			return fmt.Errorf("rules: %+v", rules)
		}
		return nil
	})
	all := alarmDocs[incident.Incident](t, s, store.KindIncident)
	if len(all) != 1 || all[0].State != incident.Firing || all[0].FirstBad == nil || all[0].FirstBad.Version != "v2" || all[0].LastGood == nil || all[0].LastGood.Version != "v1" {
		t.Errorf("incidents: %s", describe(all))
	}
	notices := alarmDocs[notice.Delivery](t, s, store.KindDelivery)
	wantNotice(t, notices)
	hook.wantOnly(t, notices)
}

func describe(all []incident.Incident) string {
	var lines []string
	for _, i := range all {
		lines = append(lines, fmt.Sprintf("%s %s %s silent %t: %s", i.ID, i.Series.Metric, i.State, i.Silent, i.Message))
	}
	return strings.Join(lines, "; ")
}
