package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// keeps is run r1, whose descriptor says what is kept of it.
func keeps(keep string) event.Fetched {
	f := fetched("r1")
	f.Descriptor += "[limits]\nkeep = \"" + keep + "\"\n"
	return f
}

func TestObjectsAreKeptAsLongAsIsAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		run      event.Fetched
		settings string
		canceled bool
		after    time.Duration
		kept     bool
	}{
		"not at all where nobody says":      {fetched("r1"), "", false, 5 * time.Second, false},
		"for a time":                        {keeps("1h"), "", false, 59 * time.Minute, true},
		"and no longer":                     {keeps("1h"), "", false, 61 * time.Minute, false},
		"as the settings say":               {fetched("r1"), "1h", false, 59 * time.Minute, true},
		"unless the descriptor says better": {keeps("never"), "1h", false, 5 * time.Second, false},
		"only failed ones, where they are":  {keeps("failed"), "", false, 5 * time.Second, false},
		"what is canceled is not":           {keeps("1h"), "", true, 20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if tt.canceled {
					w.lasts = time.Hour
				}
				_, stop := w.run(executor.Settings{Slots: 1, Keep: tt.settings}, 0, false)
				w.say(tt.run)
				time.Sleep(2 * time.Second)
				if tt.canceled {
					w.cancel("r1")
				}
				time.Sleep(tt.after)
				stop()
				w.kept(t, tt.kept)
			})
		})
	}
}

// kept checks whether objects are left, which hold no slot.
func (w *world) kept(t *testing.T, want bool) {
	t.Helper()
	if got := len(w.cluster.left()) > 0; got != want {
		t.Errorf("left: %v", w.cluster.left())
	}
	if held := w.slots(); len(held) > 0 {
		t.Errorf("%v hold slots", held)
	}
	w.once(t)
}

// TestKeptObjectsSurviveReplays: they stay and hold no slot though everything is
// said again, and go once.
func TestKeptObjectsSurviveReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.broker.twice = true
		_, stop := w.run(executor.Settings{Slots: 1}, 0, false)
		w.say(keeps("1h"), fetched("r2"))
		time.Sleep(5 * time.Second)
		stop()
		w.broker.rewind()
		_, stop = w.run(executor.Settings{Slots: 1}, 0, false)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"Job bai-r1-1", "Secret bai-r1-1"}, w.cluster.left()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		stop()
		w.over(t)
		w.once(t)
	})
}

func TestASettingOfWhatIsKeptThatIsNone(t *testing.T) {
	err := executor.Settings{Keep: "long"}.Validate()
	if err == nil || !strings.Contains(err.Error(), `executor.keep: "long", want never, failed or a time such as 1h`) {
		t.Errorf("%v", err)
	}
}

func TestWhatFailedIsKeptForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lasts = time.Hour
		_, stop := w.run(executor.Settings{Slots: 1}, 0, false)
		w.say(keeps("failed"))
		time.Sleep(2 * time.Second)
		if err := w.cluster.Delete(t.Context(), cluster.Ref{Run: "r1", Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Hour)
		if diff := cmp.Diff([]string{"r1/1"}, w.docs("kept")); diff != "" || w.ends()["r1"] != "failed" {
			t.Errorf("it ended as %s, kept (-want +got):\n%s", w.ends()["r1"], diff)
		}
		time.Sleep(2 * time.Hour)
		stop()
		if left := w.docs("kept"); len(left) > 0 {
			t.Errorf("%v is still kept", left)
		}
		w.over(t)
	})
}
