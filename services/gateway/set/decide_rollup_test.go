package set

import (
	"fmt"
	"testing"
	"time"
)

// finishedAt returns a set that finished at a time.
func finishedAt(at time.Time) Set {
	s := Set{State: StateFinished}
	s.Ended = at
	return s
}

func TestASetIsLookedAtLessAndLessOftenAfterItsEnd(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]string{
		time.Second: "5s true", time.Minute: "30s true", 20 * time.Minute: "5m0s true", time.Hour: "10m0s false",
	} {
		if got := fmt.Sprint(rollupWait(finishedAt(now.Add(-since)), now)); got != want {
			t.Errorf("%s after the end: %s, want %s", since, got, want)
		}
	}
	if got := fmt.Sprint(rollupWait(Set{State: StateRunning}, now)); got != "5s false" {
		t.Errorf("a set that runs: %s", got)
	}
}
