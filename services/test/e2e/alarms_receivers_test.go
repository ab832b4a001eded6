package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/receivers"
)

// sleeping returns the descriptor of a task that measures how long it sleeps, the best of a few tries, since a busy machine wakes nobody in time. Its alarm is
// confirmed by runs.
func sleeping(version, commit string, ms int) string {
	return script(fmt.Sprintf(`best=1000000
for i in $(seq 20); do
	begun=$(date +%%s%%N); sleep 0.%[1]d; took=$(( ($(date +%%s%%N) - begun) / 1000 ))
	[ $took -ge $best ] || best=$took
	[ $best -ge %[2]d ] || break
done
echo took=$best`, ms/10, 1000*ms+10_000),
		"[info.labels]", `task_name = "sleeping"`, fmt.Sprintf("version = %q", version), fmt.Sprintf("commit = %q", commit), `pull_request = "7"`,
		"[output]", "[[output.metrics]]", `name = "took"`, `units = "us"`, `pattern = 'took=(\d+)'`, `direction = "lower"`,
		"[[alarms]]", `metric = "took"`, `when = "regression"`, `min_change = "2%"`, "notify = "+receivers.Names, "[alarms.confirm]")
}

// receiverSettings writes a file with the settings of receivers.
func receiverSettings(t *testing.T, s *receivers.Servers) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "receivers.toml")
	file, err := os.Create(path)
	if err == nil {
		err = toml.NewEncoder(file).Encode(map[string]any{"receivers": s.Settings})
		_ = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runSleeping makes runs of a version, and waits for them.
func (p *platform) runSleeping(n int, version, commit string, ms int) {
	p.t.Helper()
	var ids []string
	for range n {
		ids = append(ids, p.submit(sleeping(version, commit, ms)))
	}
	for _, id := range ids {
		p.awaitComplete(id)
	}
}

// incidents returns all incidents of the platform.
func (p *platform) incidents() []*baiv1.Incident {
	p.t.Helper()
	r, err := baiv1.NewAlarmServiceClient(p.conn).ListIncidents(p.t.Context(), &baiv1.ListIncidentsRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.GetIncidents()
}

// awaitState waits until the only incident is in a state.
func (p *platform) awaitState(state string) *baiv1.Incident {
	p.t.Helper()
	var all []*baiv1.Incident
	eventually(p.t, func() error {
		if all = p.incidents(); len(all) != 1 || all[0].GetState() != state {
			return fmt.Errorf("incidents: %v", all)
		}
		return nil
	})
	if len(all) == 0 {
		p.t.FailNow()
	}
	return all[0]
}

// transitions describes what came at each receiver, each notice once: the one that has to come twice says so.
func transitions(s *receivers.Servers, incident string) (all []string) {
	for name, arrivals := range map[string][]receivers.Arrival{
		"hook": s.Webhook.Arrivals(), "chat": s.Slack.Arrivals(), "mail": s.Mail.Arrivals(), "pager": s.Alertmanager.Arrivals(),
	} {
		for _, a := range arrivals {
			if name != "pager" || a.Notice == incident {
				all = append(all, name+" "+a.Became)
			}
		}
	}
	slices.Sort(all)
	return all
}

// wantReceived waits until each receiver has what it is to have, and reports anything else.
func wantReceived(t *testing.T, s *receivers.Servers, incident string, became ...string) {
	t.Helper()
	var want []string
	for _, name := range []string{"chat", "hook", "mail", "pager"} {
		for _, state := range became {
			want = append(want, name+" "+state)
		}
	}
	eventually(t, func() error {
		if got := transitions(s, incident); len(got) < len(want) {
			return fmt.Errorf("%q came, want %q", got, want)
		}
		return nil
	})
	if got := transitions(s, incident); !slices.Equal(got, want) {
		t.Errorf("%q came, want %q", got, want)
	}
	if faults := s.Faults(); len(faults) > 0 {
		t.Errorf("requests that such servers refuse:\n%s", strings.Join(faults, "\n"))
	}
}

// wantPairs checks that each pair has a run of both editions.
func wantPairs(t *testing.T, c *baiv1.IncidentConfirmation) {
	t.Helper()
	pairs := map[int32]map[string]bool{}
	for _, r := range c.GetRuns() {
		if pairs[r.GetPair()] == nil {
			pairs[r.GetPair()] = map[string]bool{}
		}
		pairs[r.GetPair()][r.GetSide()] = true
	}
	for pair, sides := range pairs {
		if !maps.Equal(sides, map[string]bool{"old": true, "new": true}) {
			t.Errorf("pair %d has the sides %v", pair, sides)
		}
	}
}

// wantOnGitHub waits until a commit has failed, and the pull request has one comment, which says that it is over.
func wantOnGitHub(t *testing.T, s *receivers.Servers, commit string) {
	t.Helper()
	eventually(t, func() error {
		if got := s.GitHub.Statuses(commit); len(got) != 1 || got["benchmark-ai/sleeping"] != "failure" {
			return fmt.Errorf("the commit has the statuses %v", got)
		}
		if all := s.GitHub.Comments("7"); len(all) != 1 || strings.Count(all[0], "<!-- entry ") != 1 || !strings.Contains(all[0], "Resolved: ") {
			return fmt.Errorf("the comments are %q", all)
		}
		return nil
	})
}

// Of 40 runs the second half is 8 % slower: one incident, which runs of both versions confirm, and one notice at each kind of receiver. Once the
// version is taken back, each of them hears of the end.
func TestARegressionIsConfirmedAndSentOnceToEachKindOfReceiver(t *testing.T) {
	t.Parallel()
	const old, slow = "0000000000000000000000000000000000000001", "0000000000000000000000000000000000000002"
	s := receivers.Start(t)
	p := start(t, "--slots", "6", "--config", receiverSettings(t, s))
	p.runSleeping(20, "v1", old, 500)
	made := 0
	for ; made < 20 && len(p.incidents()) == 0; made += 4 { // more at once could be seen too late, and be no news
		p.runSleeping(4, "v2", slow, 540)
	}
	p.runSleeping(20-made, "v2", slow, 540)
	i := p.awaitState("firing")
	if c := i.GetConfirmation(); i.GetCause() != "regression" || i.GetLastGood().GetVersion() != "v1" || i.GetFirstBad().GetVersion() != "v2" || c.GetVerdict() != "confirmed" {
		t.Errorf("the incident is %v", i)
	}
	if !strings.Contains(strings.Join(i.GetReasons(), " "), "from v1 to v2") {
		t.Errorf("the reasons name no versions: %q", i.GetReasons())
	}
	wantPairs(t, i.GetConfirmation())
	wantReceived(t, s, i.GetId(), "firing")
	p.runSleeping(6, "v3", old, 500)
	p.awaitState("resolved")
	wantReceived(t, s, i.GetId(), "firing", "resolved")
	wantOnGitHub(t, s, slow)
}
