package follow

import (
	"testing"
	"time"
)

func TestALogWaitsForAReleaseThatCanReadItsDescriptor(t *testing.T) {
	t.Parallel()
	const skewed = "quantum = true\n" // a descriptor with a key of a newer release
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		descriptor   string
		after, ended time.Duration // since the log was deferred; ended is 0 for a container that runs
		want         bool
	}{
		"while it may pend":                           {skewed, 9 * time.Minute, 0, true},
		"no longer than that":                         {skewed, 10 * time.Minute, 0, false},
		"as its descriptor says":                      {skewed + "[limits]\npending_deadline = \"5s\"\n", 5 * time.Second, 0, false},
		"a little where its container has ended":      {skewed, 59 * time.Second, 50 * time.Second, true},
		"no longer than its run may wait for its end": {skewed, time.Minute, 50 * time.Second, false},
	} {
		var ended time.Time
		if tt.ended > 0 {
			ended = now.Add(tt.ended)
		}
		if got := keepsWaiting(deferredLog{Since: now}, tt.descriptor, ended, now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
