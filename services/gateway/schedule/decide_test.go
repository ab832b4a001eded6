package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors"
)

// clock returns a time of a fixed day, from hours and minutes, and seconds if given.
func clock(text string) time.Time {
	var hour, minute, second int
	_, _ = fmt.Sscanf(text, "%d:%d:%d", &hour, &minute, &second) // without seconds, it stops before them
	return time.Date(2026, 5, 4, hour, minute, second, 0, time.UTC)
}

// describe returns a plan as text.
func describe(p decision) string {
	var words []string
	for _, f := range p.Results {
		word := f.Time.Format("15:04")
		if f.Count > 1 {
			word += "-" + f.Last.Format("15:04") + fmt.Sprintf(" (%d)", f.Count)
		}
		if f.Reason != "" {
			word += " " + string(f.Reason)
		}
		if len(f.Cancel) > 0 {
			word += " for " + strings.Join(ids(f.Cancel), ",")
		}
		words = append(words, word)
	}
	for _, late := range p.Overdue {
		words = append(words, "late "+late.Run)
	}
	return strings.Join(words, "; ")
}

// decisionCase is a state and the expected decision.
type decisionCase struct {
	cron, concurrency, missed string
	window, delay             time.Duration
	since, now                string
	going                     string // active runs, RUN@TIME, …; a star at the end: reported before
	want, until, wake         string // wake is empty if a firing waits for a run
	message                   string // part of the message of the first skipped firing
}

func TestWhatBecomesOfAFiring(t *testing.T) {
	tests := map[string]decisionCase{
		"nothing is due": {
			since: "10:00", now: "10:04:59", want: "", until: "10:00", wake: "10:10",
		},
		"it is due": {
			since: "10:00", now: "10:10", want: "10:10", until: "10:10", wake: "10:20",
		},
		"it is a minute late, which is on time": {
			missed: descriptors.SkipMissed, since: "10:00", now: "10:11", want: "10:10", until: "10:10", wake: "10:20",
		},
		"skip: it is later than that": {
			missed: descriptors.SkipMissed, since: "10:00", now: "10:11:01", want: "10:10 Missed", until: "10:10", wake: "10:20",
		},
		"skip: several, of which the last is on time": {
			missed: descriptors.SkipMissed, since: "10:00", now: "10:40:30", want: "10:10-10:30 (3) Missed; 10:40", until: "10:40", wake: "10:50",
		},
		"latest: it is late": {
			missed: descriptors.LatestMissed, since: "10:00", now: "10:17", want: "10:10", until: "10:10", wake: "10:20",
		},
		"latest: several are late": {
			missed: descriptors.LatestMissed, since: "10:00", now: "10:38", want: "10:10-10:20 (2) Missed; 10:30", until: "10:30", wake: "10:40",
		},
		"latest: several are late, and one is on time": {
			missed: descriptors.LatestMissed, since: "10:00", now: "10:30:10", want: "10:10-10:20 (2) Missed; 10:30", until: "10:30", wake: "10:40",
		},
		"latest: two are on time": {
			cron: "* * * * *", missed: descriptors.LatestMissed, since: "10:00", now: "10:02", want: "10:01; 10:02", until: "10:02", wake: "10:03",
		},
		"latest: all are later than the window": {
			message: "the platform was away: looked at 16m0s late, more than schedule.missed_window (5m0s)",
			missed:  descriptors.LatestMissed, window: 5 * time.Minute, since: "10:00", now: "10:26", want: "10:10-10:20 (2) Missed", until: "10:20", wake: "10:30",
		},
		"all: several are late": {
			missed: descriptors.AllMissed, since: "10:00", now: "10:38", want: "10:10; 10:20; 10:30", until: "10:30", wake: "10:40",
		},
		"all: some are later than the window": {
			missed: descriptors.AllMissed, window: 20 * time.Minute, since: "10:00", now: "10:45", want: "10:10-10:20 (2) Missed; 10:30; 10:40", until: "10:40", wake: "10:50",
		},
		"all: more than are made at once": {
			cron: "* * * * *", missed: descriptors.AllMissed, since: "10:00", now: "10:30",
			want: "10:01; 10:02; 10:03; 10:04; 10:05; 10:06; 10:07; 10:08; 10:09; 10:10", until: "10:10", wake: "10:11",
		},
		"allow: a run goes on": {
			since: "10:00", now: "10:10", going: "a@10:00", want: "10:10; late a", until: "10:10", wake: "10:20",
		},
		"allow: of a run that goes on it is told once": {
			since: "10:10", now: "10:20", going: "a@10:00*,b@10:10", want: "10:20; late b", until: "10:20", wake: "10:30",
		},
		"forbid: none goes on": {
			concurrency: descriptors.Forbid, since: "10:00", now: "10:10", want: "10:10", until: "10:10", wake: "10:20",
		},
		"forbid: a run goes on": {
			concurrency: descriptors.Forbid, since: "10:00", now: "10:10", going: "a@10:00", want: "10:10 Overlap; late a", until: "10:10", wake: "10:20",
		},
		"forbid: two are due at once": {
			cron: "* * * * *", concurrency: descriptors.Forbid, since: "10:00", now: "10:02", want: "10:01; 10:02 Overlap", until: "10:02", wake: "10:03",
		},
		"forbid, all: they wait for the run that goes on": {
			concurrency: descriptors.Forbid, missed: descriptors.AllMissed, since: "10:00", now: "10:25", going: "a@10:00*", want: "", until: "10:00", wake: "",
		},
		"forbid, all: one after another": {
			concurrency: descriptors.Forbid, missed: descriptors.AllMissed, since: "10:00", now: "10:25", want: "10:10", until: "10:10", wake: "",
		},
		"forbid, all: for no longer than the window": {
			concurrency: descriptors.Forbid, missed: descriptors.AllMissed, window: 10 * time.Minute, since: "10:00", now: "10:25", going: "a@10:00*",
			want: "10:10 Overlap", until: "10:10", wake: "", message: "a run of an earlier firing went on (a)",
		},
		"forbid, all: the run that goes on began when it was too late already": {
			concurrency: descriptors.Forbid, missed: descriptors.AllMissed, window: 5 * time.Minute, since: "10:00", now: "10:18", going: "a@10:17*",
			want: "10:10 Missed", until: "10:10", wake: "10:20", message: "the platform was away, or runs of earlier firings went on",
		},
		"all: more than are made up for": {
			cron: "* * * * *", missed: descriptors.AllMissed, window: 20 * time.Hour, since: "00:00", now: "16:42",
			want: "00:01-00:02 (2) Missed; 00:03; 00:04; 00:05; 00:06; 00:07; 00:08; 00:09; 00:10; 00:11; 00:12", until: "00:12", wake: "00:13",
			message: "when more than 1000 firings were due",
		},
		"forbid: the run that goes on is its own, of a gateway that died": {
			concurrency: descriptors.Forbid, since: "10:00", now: "10:11", going: "a@10:10", want: "10:10", until: "10:10", wake: "10:20",
		},
		"replace: the run that goes on is its own, of a gateway that died": {
			concurrency: descriptors.Replace, since: "10:00", now: "10:11", going: "a@10:10", want: "10:10", until: "10:10", wake: "10:20",
		},
		"replace: a run goes on": {
			concurrency: descriptors.Replace, since: "10:00", now: "10:10", going: "a@10:00,b@09:50*", want: "10:10 for a,b; late a", until: "10:10", wake: "10:20",
		},
		"replace: several are due at once": {
			cron: "* * * * *", concurrency: descriptors.Replace, missed: descriptors.AllMissed, since: "10:00", now: "10:04", going: "a@10:00*",
			want: "10:01-10:03 (3) Overlap; 10:04 for a", until: "10:04", wake: "10:05",
		},
		"its own delay": {
			delay: 3 * time.Minute, since: "10:00", now: "10:12:59", want: "", until: "10:00", wake: "10:13",
		},
		"its own delay is over": {
			delay: 3 * time.Minute, since: "10:00", now: "10:13", want: "10:10", until: "10:10", wake: "10:23",
		},
		"a delay counts as no lateness": {
			delay: 3 * time.Minute, missed: descriptors.SkipMissed, since: "10:00", now: "10:14", want: "10:10", until: "10:10", wake: "10:23",
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func (f decisionCase) check(t *testing.T) {
	rules := Rules{
		Cron: cmp.Or(f.cron, "*/10 * * * *"), Zone: "UTC", Concurrency: cmp.Or(f.concurrency, descriptors.Allow), Missed: cmp.Or(f.missed, descriptors.LatestMissed),
		Window: cmp.Or(f.window, time.Hour), Delay: f.delay, History: 20,
	}
	look := state{Rules: rules, Times: mustTimes(t, rules), Since: clock(f.since), Now: clock(f.now), Active: going(f.going)}
	plan := decide(look)
	want(t, "plan", describe(plan), f.want)
	for _, one := range plan.Results {
		if one.Reason != "" && one.Message == "" {
			t.Errorf("%s is not said why", one.Time)
		}
	}
	if f.message != "" && !strings.Contains(plan.Results[0].Message, f.message) {
		t.Errorf("said of it: %q, want %q", plan.Results[0].Message, f.message)
	}
	wake := time.Time{}
	if f.wake != "" {
		wake = clock(f.wake)
	}
	if !plan.Until.Equal(clock(f.until)) || !plan.Wake.Equal(wake) {
		t.Errorf("until %s and then at %s, want %s and %s", plan.Until, plan.Wake, f.until, f.wake)
	}
}

func mustTimes(t interface{ Fatal(args ...any) }, r Rules) firingTimes {
	all, err := r.times()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func ids(all []Execution) []string {
	words := make([]string, 0, len(all))
	for _, w := range all {
		words = append(words, w.id())
	}
	return words
}

func going(text string) []activeExecution {
	var all []activeExecution
	for word := range strings.SplitSeq(text, ",") {
		run, at, ok := strings.Cut(strings.TrimSuffix(word, "*"), "@")
		if ok {
			all = append(all, activeExecution{Execution: Execution{Run: run}, Time: clock(at), Reported: strings.HasSuffix(word, "*")})
		}
	}
	return all
}

func TestAScheduleFiresFromItsStartOnAndBeforeItsEnd(t *testing.T) {
	r := Rules{Cron: "0 * * * *", Zone: "UTC", Start: clock("10:00"), End: clock("13:00")}
	var got []string
	for _, at := range mustTimes(t, r).Next(clock("00:00"), 10) {
		got = append(got, at.Format("15:04"))
	}
	want(t, "times", strings.Join(got, " "), "10:00 11:00 12:00")
	if due, wake := isDue(state{Rules: r, Times: mustTimes(t, r), Since: clock("12:00"), Now: clock("18:00")}); due || !wake.IsZero() {
		t.Errorf("after its end it is due (%t) or wakes at %s", due, wake)
	}
}

func TestTimesBetweenTwoTimesAreFromTheFirstOnAndBeforeTheSecond(t *testing.T) {
	r := Rules{Cron: "0 * * * *", Zone: "UTC"}
	for n, want := range map[int]string{10: "10 11 12 false", 3: "10 11 12 false", 2: "10 11 true"} {
		all, more := mustTimes(t, r).Between(clock("10:00"), clock("13:00"), n)
		got := ""
		for _, at := range all {
			got += at.Format("15 ")
		}
		if got += fmt.Sprint(more); got != want {
			t.Errorf("at most %d: %s, want %s", n, got, want)
		}
	}
}

func TestADelayIsAlwaysTheSameForOneScheduleAndNoMoreThanTheJitter(t *testing.T) {
	d := &descriptors.Descriptor{Info: descriptors.Info{Scheduling: "@daily", Timezone: "UTC"}, Schedule: descriptors.Schedule{Jitter: 10 * time.Minute}}
	seen := map[time.Duration]bool{}
	for i := range 200 {
		id := idOf("ann", fmt.Sprint(i), "")
		delay := rulesOf(id, d).Delay
		if delay != rulesOf(id, d).Delay || delay < 0 || delay > 10*time.Minute {
			t.Fatalf("%s", delay)
		}
		seen[delay] = true
	}
	if len(seen) < 100 {
		t.Errorf("200 schedules have %d delays", len(seen))
	}
}

func TestAScheduleIsThatOfItsOwnerAndNameAndElseOfItsWords(t *testing.T) {
	a := idOf("ann", "nightly", "x")
	if a != idOf("ann", "nightly", "y") {
		t.Error("other words make it another")
	}
	for name, other := range map[string]string{
		"another owner": idOf("bob", "nightly", "x"), "another name": idOf("ann", "weekly", "x"), "no name": idOf("ann", "", "x"),
	} {
		if other == a {
			t.Errorf("%s: the same schedule", name)
		}
	}
	if idOf("ann", "", "x") == idOf("ann", "", "y") {
		t.Error("without a name other words are the same schedule")
	}
}

// However often and late decide is called, each firing gets one result, in order, and
// no later call decides about it again.
func TestEveryFiringHasOneFate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := Rules{
			Cron: rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "5,20 * * * *", "0 */2 * * *"}).Draw(rt, "cron"), Zone: "UTC",
			Concurrency: rapid.SampledFrom([]string{descriptors.Allow, descriptors.Forbid, descriptors.Replace}).Draw(rt, "concurrency"),
			Missed:      rapid.SampledFrom([]string{descriptors.SkipMissed, descriptors.LatestMissed, descriptors.AllMissed}).Draw(rt, "missed"),
			Window:      time.Duration(rapid.IntRange(1, 120).Draw(rt, "window")) * time.Minute,
			Delay:       time.Duration(rapid.IntRange(0, 300).Draw(rt, "delay")) * time.Second,
		}
		h := firingHistory{rules: r, times: mustTimes(rt, r), now: clock("00:00"), decided: clock("00:00")}
		for range rapid.IntRange(1, 30).Draw(rt, "looks") {
			h.now = h.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "pause")) * time.Second)
			if rapid.Bool().Draw(rt, "ends") {
				h.active = nil
			}
			h.decide(rt)
		}
	})
}

// firingHistory has the firings of a schedule.
type firingHistory struct {
	rules        Rules
	times        firingTimes
	now, decided time.Time
	active       []activeExecution
}

// decide decides, and checks that firings are in order, without gaps or duplicates.
func (h *firingHistory) decide(rt *rapid.T) {
	plan := decide(state{Rules: h.rules, Times: h.times, Since: h.decided, Now: h.now, Active: h.active})
	for _, f := range plan.Results {
		if f.Time.Add(h.rules.Delay).After(h.now) {
			rt.Fatalf("%s fires at %s", f.Time, h.now)
		}
		for range f.Count {
			next := h.times.After(h.decided)
			if next.After(later(f.Time, f.Last)) {
				rt.Fatalf("after %s comes %s, not %s", h.decided, next, f.Time)
			}
			h.decided = next
		}
		h.fire(rt, f)
	}
	if !plan.Until.Equal(h.decided) {
		rt.Fatalf("decided until %s, want %s", plan.Until, h.decided)
	}
}

// fire adds an active run if the result makes one.
func (h *firingHistory) fire(rt *rapid.T, f firingResult) {
	if f.Reason != "" {
		return
	}
	h.active = append(h.active, activeExecution{Execution: Execution{Run: f.Time.String()}, Time: f.Time})
	if h.rules.Concurrency == descriptors.Forbid && len(h.active) > 1 {
		rt.Fatalf("%s fires beside %s", f.Time, h.active[0].Run)
	}
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
