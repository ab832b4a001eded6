package api_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestWhenAllOfALogHasCome(t *testing.T) {
	const timeout = 30 * time.Second
	over := time.Unix(1_000_000, 0)
	run := store.Run{Phase: event.PhaseFinished, Updated: over, Collectors: []string{"p"}}
	whole, running, old := run, run, run
	whole.Collectors = nil
	running.Phase = event.PhaseRunning
	old.Updated = over.Add(-25 * time.Hour)
	type look struct {
		after  time.Duration
		stored int64
	}
	for name, tt := range map[string]struct {
		run   store.Run
		looks []look
		want  bool
	}{
		"a run that is not over":                      {running, []look{{0, 1}, {time.Hour, 1}}, false},
		"a run of which all is there":                 {whole, []look{{0, 1}}, true},
		"something is missing, a moment ago":          {run, []look{{0, 1}, {20 * time.Second, 1}}, false},
		"something is missing, and nothing comes":     {run, []look{{0, 1}, {31 * time.Second, 1}}, true},
		"something is missing, and more comes":        {run, []look{{0, 1}, {20 * time.Second, 2}, {20 * time.Second, 3}, {20 * time.Second, 4}}, false},
		"more came, then nothing":                     {run, []look{{0, 1}, {20 * time.Second, 2}, {31 * time.Second, 2}}, true},
		"who comes later waits for what may come too": {run, []look{{time.Hour, 1}, {20 * time.Second, 1}}, false},
		"a run that was over the day before":          {old, []look{{0, 1}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			state, at := new(api.FollowState), over
			for _, l := range tt.looks {
				at = at.Add(l.after)
				state.Observe(tt.run, []store.Stream{{Topic: event.TopicLogs, Stored: l.stored}}, at, timeout)
			}
			if state.Complete() != tt.want {
				t.Errorf("out: %t", state.Complete())
			}
		})
	}
}
