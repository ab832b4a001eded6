package expiry

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func TestAGroupIsLookedAtOneSessionAfterTheLastRequestToJoin(t *testing.T) {
	t.Parallel()
	g := &group{}
	g.joined(noon, 2*time.Second)
	g.joined(after(time.Second), 2*time.Second)
	want(t, g, 2*time.Second, stepWait)
	want(t, g, 3*time.Second, stepLook)
}

func TestAGroupInARebalanceIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	g := &group{}
	g.joined(noon, 2*time.Second)
	g.found(after(2*time.Second), false, []string{"a", "b"})
	want(t, g, 3*time.Second, stepWait)
	want(t, g, 4*time.Second, stepLook)
}

func TestMembersWithoutAHeartbeatInThreeSessionsAreRemoved(t *testing.T) {
	t.Parallel()
	g := &group{}
	g.joined(noon, 2*time.Second)
	g.found(after(2*time.Second), true, []string{"alive", "dead"})
	if g.heard("alive") {
		t.Error("every member was heard, want one that was not")
	}
	want(t, g, 7*time.Second, stepWait)
	want(t, g, 8*time.Second, stepRemove)
	if _, ok := g.silent["dead"]; len(g.silent) != 1 || !ok {
		t.Errorf("silent: %v, want the dead member alone", g.silent)
	}
}

func TestAGroupWhoseMembersWereAllHeardNeedsNoMore(t *testing.T) {
	t.Parallel()
	g := &group{}
	g.joined(noon, 2*time.Second)
	if g.heard("a") {
		t.Error("before the members are known nobody can tell whether all were heard")
	}
	g.found(after(2*time.Second), true, []string{"a", "b"})
	if g.heard("a") || g.heard("stranger") || !g.heard("b") {
		t.Error("want that the heartbeats of both members are needed, and enough")
	}
}

func TestANewRequestToJoinForgetsWhoWasSilent(t *testing.T) {
	t.Parallel()
	g := &group{}
	g.joined(noon, 2*time.Second)
	g.found(after(2*time.Second), true, []string{"a"})
	g.joined(after(3*time.Second), time.Second)
	want(t, g, 4*time.Second, stepWait)
	want(t, g, 5*time.Second, stepLook) // by the longest session of the group
}

func TestAnySessionThatSomebodyAsksForIsTakenWithinBounds(t *testing.T) {
	t.Parallel()
	for _, asked := range []time.Duration{-time.Hour, 0, time.Millisecond} {
		g := &group{}
		g.joined(noon, asked)
		if g.session != minSession {
			t.Errorf("%s: session %s, want %s", asked, g.session, minSession)
		}
	}
	g := &group{}
	g.joined(noon, 1000*time.Hour)
	if g.session != maxSession {
		t.Errorf("session %s, want %s", g.session, maxSession)
	}
}

func want(t *testing.T, g *group, at time.Duration, step step) {
	t.Helper()
	if got := g.next(after(at)); got != step {
		t.Errorf("after %s: step %d, want %d", at, got, step)
	}
}
