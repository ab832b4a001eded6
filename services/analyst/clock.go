package analyst

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	leaseName = "analyst/clock"
	failPause = time.Second
)

// ticker looks for what no event says: values that did not come, what users said of incidents, and the end of that, and what
// runs say of incidents that they confirm.
type ticker struct {
	*analyst

	leader *control.Leader
	meter  Meter
	forgot time.Time // when old incidents were last looked for
}

func newTicker(s Settings, d Deps, a *analyst) *ticker {
	if d.Meter == nil {
		d.Meter = noMeter{}
	}
	return &ticker{
		analyst: a, meter: d.Meter,
		leader: control.NewLeader(d.Store, leaseName, rand.Text(), s.Lease, control.LeaderSettings{Now: d.Now, Log: d.Log}),
	}
}

// loop returns the runnable of the ticker.
func (t *ticker) loop(every time.Duration, log *zap.Logger) service.Runnable {
	loop := control.NewLoop("analyst", every, log, t.tick, control.LoopSettings{
		Backoff: control.Backoff{First: failPause, Max: every},
		Failing: "missing values and acknowledgements cannot be looked for now",
		Working: "missing values and acknowledgements are looked for again",
	})
	return func(ctx context.Context) error {
		defer t.leader.Release(ctx)
		return loop.Run(ctx)
	}
}

// tick looks once, if no other process does.
func (t *ticker) tick(ctx context.Context) (time.Duration, error) {
	_, err := t.leader.Hold(ctx)
	if errors.Is(err, store.ErrHeld) {
		t.meter.RecordIncidents(nil)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// Verdicts of runs come before the review: it decides the groups of incidents that a kill has left with some of their verdicts.
	return 0, errors.Join(t.confirmations(ctx), t.review(ctx), t.missing(ctx), t.forget(ctx))
}

// missing looks at the rules about values that do not come. A task that cannot be looked at delays no other.
func (t *ticker) missing(ctx context.Context) error {
	var errs []error
	for d, err := range store.All[incident.RuleSet](ctx, t.store, store.KindRuleSet, "") {
		if err != nil && d.Key == "" {
			return errors.Join(append(errs, err)...)
		}
		if err != nil {
			t.log.Error("the rules of a task cannot be read", zap.String("task", d.Key), zap.Error(err))
			continue
		}
		var targets []target
		for _, r := range d.Value.Rules {
			if r.When == incident.Missing {
				targets = append(targets, target{rule: r, series: taskSeries(r)})
			}
		}
		if len(targets) == 0 {
			continue
		}
		if err := t.analysis(targets[0].rule.Namespace, targets[0].rule.Task, clock).run(ctx, targets); err != nil {
			errs = append(errs, fmt.Errorf("look for missing values of task %q: %w", d.Key, err))
		}
	}
	return errors.Join(errs...)
}
