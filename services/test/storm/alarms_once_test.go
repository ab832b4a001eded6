package storm_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"go.uber.org/zap"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/test/testbed/receivers"
)

// wantIncidentsOnce checks that each series has one incident of each cycle, which is over.
func (s *alarmStorm) wantIncidentsOnce() {
	t := s.w.t
	t.Helper()
	all, err := s.list(t.Context(), &baiv1.ListIncidentsRequest{})
	if err != nil {
		t.Error(err)
		return
	}
	seen := map[string]string{}
	for _, i := range all {
		began := fmt.Sprintf("%s %v from run %s", i.GetTask(), i.GetLabels(), i.GetFirstBad().GetRunId())
		if other := seen[began]; other != "" {
			t.Errorf("the incidents %s and %s are both of %s", other, i.GetId(), began)
		}
		if seen[began] = i.GetId(); i.GetState() != "resolved" || i.GetSilent() {
			t.Errorf("incident %s of %s is %s, silent %t", i.GetId(), began, i.GetState(), i.GetSilent())
		}
	}
	if want := int(s.cycles.Load()) * s.series; len(all) != want {
		t.Errorf("%d incidents, want %d", len(all), want)
	}
	t.Logf("%d incidents", len(all))
}

// wantNoticesOnce checks that each receiver was sent one notice of the beginning and one of the end of each group.
func (s *alarmStorm) wantNoticesOnce(notices []*baiv1.Notice) {
	t := s.w.t
	t.Helper()
	all, err := s.list(t.Context(), &baiv1.ListIncidentsRequest{})
	if err != nil {
		t.Error(err)
		return
	}
	groups := map[string]string{} // by incident
	want := map[string]int{}      // by group, the number of its incidents
	for _, i := range all {
		groups[i.GetId()] = i.GetGroupId()
		want[i.GetGroupId()]++
	}
	named := s.named(notices, groups)
	for group, incidents := range want {
		if incidents != s.series {
			t.Errorf("group %s has %d incidents, want the %d of its run", group, incidents, s.series)
		}
		for receiver := range s.places.All() {
			firing, resolved := named[receiver+" "+group+" firing"], named[receiver+" "+group+" resolved"]
			if len(firing) != 1 || len(resolved) != 1 {
				t.Errorf("receiver %s has the notices %q of the beginning of group %s, and %q of its end, want one of each", receiver, firing, group, resolved)
			}
		}
	}
	if pairs := 2 * len(want) * len(s.places.All()); len(notices) != pairs {
		t.Errorf("%d notices, want %d", len(notices), pairs)
	}
}

// named returns the notices by receiver, group and transition, and reports those that were not sent, or lack incidents. The groups are by incident.
func (s *alarmStorm) named(notices []*baiv1.Notice, groups map[string]string) map[string][]string {
	s.w.t.Helper()
	named := map[string][]string{}
	for _, n := range notices {
		if len(n.GetIncidentIds()) == 0 || n.GetStatus() != "sent" {
			s.w.t.Errorf("a notice of no incident, or one that was not sent: %v", n)
			continue
		}
		size := len(n.GetIncidentIds()) + int(n.GetMore())
		if size != s.series {
			s.w.t.Errorf("notice %s to %s that its group is %s has %d of its %d incidents", n.GetId(), n.GetReceiver(), n.GetBecame(), size, s.series)
		}
		at := fmt.Sprintf("%s %s %s", n.GetReceiver(), groups[n.GetIncidentIds()[0]], n.GetBecame())
		named[at] = append(named[at], fmt.Sprintf("%s of %d", n.GetId(), size))
	}
	return named
}

// wantArrivalsOnce checks what came at each receiver against the notices that were sent to it.
func (s *alarmStorm) wantArrivalsOnce(notices []*baiv1.Notice) {
	t := s.w.t
	t.Helper()
	if faults := s.places.Faults(); len(faults) > 0 {
		t.Errorf("requests that such servers refuse:\n%s", strings.Join(faults, "\n"))
	}
	sent := map[string]map[string]bool{}
	alerts := map[string]bool{}
	for _, n := range notices {
		if sent[n.GetReceiver()] == nil {
			sent[n.GetReceiver()] = map[string]bool{}
		}
		sent[n.GetReceiver()][n.GetId()] = true
		if n.GetReceiver() == "pager" && n.GetBecame() == "firing" { // the end of an alert that never began is none
			for _, id := range n.GetIncidentIds() {
				alerts[id+" firing"], alerts[id+" resolved"] = true, true
			}
		}
	}
	for name, arrivals := range map[string][]receivers.Arrival{
		"hook": s.places.Webhook.Arrivals(), "mail": s.places.Mail.Arrivals(), "chat": s.places.Slack.Arrivals(),
	} {
		s.wantArrivals(name, sent[name], arrivals)
	}
	s.wantAlerts(alerts)
	s.wantStatuses()
}

// wantArrivals checks that all that was sent came, and that what came again says so.
func (s *alarmStorm) wantArrivals(receiver string, sent map[string]bool, arrivals []receivers.Arrival) {
	t := s.w.t
	t.Helper()
	times, repeated := map[string]int{}, 0
	for _, a := range arrivals {
		times[a.Notice]++
		switch {
		case !sent[a.Notice]:
			t.Errorf("at %s came the notice %s, which was not sent", receiver, a.Notice)
		case times[a.Notice] > 1:
			if repeated++; !a.Again {
				t.Errorf("at %s the notice %s came %d times, and does not say so: %s", receiver, a.Notice, times[a.Notice], a.Text)
			}
		}
	}
	for id := range sent {
		if times[id] == 0 {
			t.Errorf("at %s the notice %s never came", receiver, id)
		}
	}
	t.Logf("at %s came %d notices, and %d of them again after an interruption", receiver, len(times), repeated)
}

// wantAlerts checks that Alertmanager notified once of the beginning and once of the end of each alert.
func (s *alarmStorm) wantAlerts(want map[string]bool) {
	t := s.w.t
	t.Helper()
	late := time.Now().Add(30 * time.Second) // it notifies later than it answers
	faults := s.alertFaults(want)
	for len(faults) > 0 && time.Now().Before(late) && wait(t.Context(), pollInterval) {
		faults = s.alertFaults(want)
	}
	if len(faults) > 0 {
		t.Errorf("of %d transitions Alertmanager is to notify once of each:\n%s", len(want), strings.Join(faults, "\n"))
	}
}

// alertFaults describes the transitions of which Alertmanager did not notify once.
func (s *alarmStorm) alertFaults(want map[string]bool) (faults []string) {
	times := map[string]int{}
	for _, a := range s.places.Alertmanager.Arrivals() {
		times[a.Notice+" "+a.Became]++
	}
	for alert, n := range times {
		if n != 1 || !want[alert] {
			faults = append(faults, fmt.Sprintf("%s %d times", alert, n))
		}
	}
	for alert := range want {
		if times[alert] == 0 {
			faults = append(faults, alert+" never")
		}
	}
	slices.Sort(faults)
	return faults
}

// wantStatuses checks that each commit has one status, and each pull request one comment with an entry of each cycle.
func (s *alarmStorm) wantStatuses() {
	t := s.w.t
	t.Helper()
	tasks := map[string]int{}
	for commit, task := range s.commit {
		tasks[task]++
		if got := s.places.GitHub.Statuses(commit); len(got) != 1 || got["benchmark-ai/"+task] != "failure" {
			t.Errorf("the commit %s of %s has the statuses %v", commit, task, got)
		}
	}
	entry := regexp.MustCompile(`<!-- entry (\w+) -->`)
	for task, cycles := range tasks {
		comments := s.places.GitHub.Comments(strings.TrimPrefix(task, "task-"))
		if len(comments) != 1 {
			t.Errorf("the pull request of %s has %d comments", task, len(comments))
			continue
		}
		keys := map[string]bool{}
		all := entry.FindAllStringSubmatch(comments[0], -1)
		for _, found := range all {
			keys[found[1]] = true
		}
		if len(all) != len(keys) || len(keys) != cycles && len(comments[0]) < 50_000 {
			t.Errorf("the comment about %s has %d entries, of which %d differ, want %d: %s", task, len(all), len(keys), cycles, comments[0])
		}
	}
}

// arrivals returns how many arrivals there are at each receiver.
func (s *alarmStorm) arrivals() map[string]int {
	return map[string]int{
		"hook": len(s.places.Webhook.Arrivals()), "mail": len(s.places.Mail.Arrivals()), "chat": len(s.places.Slack.Arrivals()), "pager": len(s.places.Alertmanager.Arrivals()),
	}
}

// wantNothingNew checks that something makes and sends no notice.
func (s *alarmStorm) wantNothingNew(before []*baiv1.Notice, do func()) {
	t := s.w.t
	t.Helper()
	came := s.arrivals()
	do()
	known := map[string]string{}
	for _, n := range before {
		known[n.GetReceiver()+" "+n.GetId()] = n.GetStatus()
	}
	after := s.awaitSent()
	for _, n := range after {
		if known[n.GetReceiver()+" "+n.GetId()] != n.GetStatus() {
			t.Errorf("a new notice: %v", n)
		}
	}
	if now := s.arrivals(); len(after) != len(before) || !maps.Equal(now, came) {
		t.Errorf("%d notices, %d before; %v came, %v before", len(after), len(before), now, came)
	}
	s.wantIncidentsOnce()
}

// eventTopics are those of events, without what runs measure.
func eventTopics() []string {
	return slices.DeleteFunc(event.Topics(), func(name string) bool {
		return name == event.TopicMetrics || name == event.TopicLogs || name == event.TopicDead
	})
}

// bus returns a bus that knows the groups of all services, and hears nothing.
func (s *alarmStorm) bus() *kafka.Bus {
	t := s.w.t
	t.Helper()
	var settings struct{ Kafka kafka.Settings }
	_, err := toml.DecodeFile(filepath.Join(s.w.dir, "services.toml"), &settings)
	if err != nil {
		t.Fatal(err)
	}
	b, err := kafka.NewBus(settings.Kafka, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for group, topics := range map[string][]string{
		"gateway": eventTopics(), "analyst-finished": {event.TopicFinished}, "analyst-summarised": {event.TopicSummarised},
		"metrics-pusher-summaries": {event.TopicFinished}, "metrics-pusher-metrics": {event.TopicMetrics}, "metrics-pusher-logs": {event.TopicLogs},
		"fetcher": {event.TopicSubmitted, event.TopicCommands}, "executor-fetched": {event.TopicFetched}, "executor-retried": {event.TopicRetried},
		"executor-commands": {event.TopicCommands}, "executor-finished": {event.TopicFinished},
		"watcher-launched": {event.TopicLaunched}, "watcher-commands": {event.TopicCommands},
	} {
		for _, topic := range topics {
			b.Consume(group, service.Step{Topic: topic})
		}
	}
	return b
}

// awaitHandled waits until the analysts have handled all events that there are, and all that follow from those.
func (s *alarmStorm) awaitHandled() {
	t := s.w.t
	t.Helper()
	b := s.bus()
	defer b.Close()
	groups := []string{"metrics-pusher-metrics", "metrics-pusher-logs", "metrics-pusher-summaries", "analyst-finished", "analyst-summarised"}
	for late := time.Now().Add(waitTimeout); ; {
		n, err := b.Backlog(t.Context(), groups...)
		if err == nil && n == 0 {
			return
		}
		if time.Now().After(late) || !wait(t.Context(), pollInterval) {
			t.Fatalf("%d events are not handled: %v", n, err)
		}
	}
}

// repeatEverything has everything that was delivered delivered once more.
func (s *alarmStorm) repeatEverything() {
	s.w.t.Helper()
	kafkatest.Repeat(s.w.t, s.w.broker.Addr, slices.Concat([]string{event.TopicMetrics, event.TopicLogs}, eventTopics())...)
	s.awaitHandled()
}

// rewindEverything kills all processes, and has them hear all topics from the beginning.
func (s *alarmStorm) rewindEverything() {
	w := s.w
	w.t.Helper()
	for _, p := range w.processes() {
		p.Kill(w.t)
	}
	b := s.bus()
	err := b.Rewind(w.t.Context())
	b.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range w.processes() {
		p.Begin(w.t)
	}
	w.awaitReady()
	s.awaitHandled()
}
