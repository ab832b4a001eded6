package alarm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// request asks for a mute of a task for some days from the fixture's time on.
func request(task string, days int) alarm.MuteRequest {
	return alarm.MuteRequest{Task: task, By: "ann", Reason: "moving", Until: start().AddDate(0, 0, 10+days)}
}

func TestAMuteThatIsRepeatedIsTheSame(t *testing.T) {
	w := newFixture(t)
	first, text := w.mute(request("rates", 3))
	if diff := cmp.Diff("rates map[] by ann 2026-03-11 to 2026-03-14: moving", text); diff != "" || len(first) != 26 {
		t.Errorf("%s (-want +got):\n%s", first, diff)
	}
	w.now = w.now.Add(time.Hour)
	second := request("rates", 3)
	second.Labels = map[string]string{}
	if id, again := w.mute(second); id != first || again != text {
		t.Errorf("%s: %s, want %s: %s", id, again, first, text)
	}
	if id, _ := w.mute(request("rates", 4)); id == first {
		t.Error("a mute with another end is the same")
	}
	if diff := cmp.Diff([]string{"rates", "rates"}, w.mutes(false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMuteIsRefusedWithWhatToDo(t *testing.T) {
	w := newFixture(t)
	for name, c := range map[string]struct {
		change func(*alarm.MuteRequest)
		want   string
	}{
		"for everything by mistake": {func(r *alarm.MuteRequest) { r.Task = "" }, "field: task and labels are missing: name a task, give labels, or say that all tasks are meant"},
		"for a task and for all":    {func(r *alarm.MuteRequest) { r.All = true }, "field: all excludes a task and labels: leave it out"},
		"without an end":            {func(r *alarm.MuteRequest) { r.Until = time.Time{} }, "field: until is missing: say when the mute ends"},
		"until yesterday":           {func(r *alarm.MuteRequest) { r.Until = start() }, "field: until 2026-03-01T02:00:00Z is not in the future: give a later time"},
		"for ever": {
			func(r *alarm.MuteRequest) { r.Until = start().AddDate(2, 0, 0) },
			"field: until 2028-03-01T02:00:00Z is too far in the future: end the mute within 366 days, or remove the rule from the descriptor",
		},
		"without a reason":    {func(r *alarm.MuteRequest) { r.Reason = "" }, "field: reason is missing: say why in a sentence"},
		"of a long task":      {func(r *alarm.MuteRequest) { r.Task = strings.Repeat("x", 257) }, "field: task has 257 bytes: take at most 256"},
		"of a strange team":   {func(r *alarm.MuteRequest) { r.Namespace = "a/b" }, `field: namespace "a/b" is not the name of a team: give a name without /`},
		"of a label's nobody": {func(r *alarm.MuteRequest) { r.Labels = map[string]string{"": "x"} }, `field: labels "=x" has no name or is too long: take at most 256 bytes for each name and value`},
	} {
		t.Run(name, func(t *testing.T) {
			r := request("rates", 3)
			c.change(&r)
			if _, text := w.mute(r); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
	if got := w.mutes(true); len(got) > 0 {
		t.Errorf("mutes of %v", got)
	}
}

func TestAllTasksAreMutedWhereThatIsSaid(t *testing.T) {
	w := newFixture(t)
	r := request("", 1)
	r.All = true
	if _, text := w.mute(r); text != " map[] by ann 2026-03-11 to 2026-03-12: moving" {
		t.Error(text)
	}
}

func TestMutesEnd(t *testing.T) {
	w := newFixture(t)
	w.mute(request("short", 1))
	w.now = w.now.Add(time.Minute)
	w.mute(request("long", 60))
	if diff := cmp.Diff([]string{"long", "short"}, w.mutes(false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.now = w.now.AddDate(0, 0, 20)
	w.mute(request("next", 60))
	if diff := cmp.Diff([][]string{{"next", "long"}, {"next", "long", "short"}}, [][]string{w.mutes(false), w.mutes(true)}); diff != "" {
		t.Errorf("after its end (-want +got):\n%s", diff)
	}
	w.now = w.now.AddDate(0, 0, 20)
	w.mute(request("last", 60))
	if diff := cmp.Diff([]string{"last", "next", "long"}, w.mutes(true)); diff != "" {
		t.Errorf("long after its end (-want +got):\n%s", diff)
	}
}

func TestAMuteIsRemovedByTheBeginningOfItsID(t *testing.T) {
	w := newFixture(t)
	id, _ := w.mute(request("rates", 3))
	for _, want := range []bool{true, false} {
		if existed, err := w.Unmute(t.Context(), "default", id[:6]); err != nil || existed != want {
			t.Errorf("existed %t, %v, want %t", existed, err, want)
		}
	}
	if again, _ := w.mute(request("rates", 3)); again != id {
		t.Errorf("made again as %q, want %q", again, id)
	}
	if _, err := w.Unmute(t.Context(), "default", "short"); err == nil {
		t.Error("a text that is no ID was accepted")
	}
}

func TestATeamHasAThousandMutesAtMost(t *testing.T) {
	w := newFixture(t)
	for i := range 1000 {
		id := fmt.Sprintf("%026d", i)
		w.put(store.KindMute, "default/"+id, incident.Mute{ID: id, Namespace: "default", Until: w.now.Add(time.Hour)})
	}
	if _, text := w.mute(request("rates", 3)); text != "state: team default has 1000 mutes already (remove some: baictl alarms unmute ID)" {
		t.Error(text)
	}
}
