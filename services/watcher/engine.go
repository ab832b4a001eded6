package watcher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// Engine is a cluster that attempts run on.
type Engine struct {
	Cluster Cluster
	// Ready returns the reason why the cluster cannot be used now, or nil. It is nil itself for
	// a cluster of this process.
	Ready func(ctx context.Context) error
	// Annotator gives pods the addresses of the others of their run. It is nil for a cluster whose pods have them from elsewhere.
	Annotator cluster.Annotator
}

// Times of the checks whether an engine answers.
const (
	readyInterval = 5 * time.Second  // between two checks, and of one at most
	outageAfter   = 10 * time.Second // since the first of the checks that failed
)

// engine is an engine in this process: with the attempts on it that are to be decided about, so that an engine that does not answer delays
// no attempts of others.
type engine struct {
	Engine

	name  string // empty for the default one
	queue *queue.Queue[attempt]

	mu           sync.Mutex
	failingSince time.Time // since when checks have failed; zero after one that succeeded
	away         bool      // they have failed for long enough
}

// engines are the engines by name, that of the default one being empty, and one for the attempts of all others.
type engines struct {
	byName  map[string]*engine
	missing *engine
}

func newEngines(s Settings, d Deps) engines {
	add := func(name string, e Engine) *engine {
		return &engine{
			Engine: e, name: name,
			queue: queue.New(d.Log, queue.Settings[attempt]{First: s.Retry, Max: s.maxRetry(), Fields: func(a attempt) []zap.Field {
				return []zap.Field{zap.String("run", a.run), zap.Int("attempt", a.number)}
			}}),
		}
	}
	all := engines{byName: make(map[string]*engine), missing: add("", Engine{Cluster: missingCluster{}})}
	all.missing.away = true
	all.byName[""] = add("", Engine{d.Cluster, d.Ready, d.Annotator})
	for name, e := range d.Engines {
		all.byName[name] = add(name, e)
	}
	return all
}

// of returns the engine of a launched attempt. The default one has the name of its kind in launches.
func (e engines) of(l event.Launched) *engine {
	if named, ok := e.byName[l.Cluster]; ok {
		return named
	}
	if verdict.OnDefaultEngine(l) {
		return e.byName[""]
	}
	return e.missing
}

// all returns the engines in the order of their names.
func (e engines) all() []*engine {
	all := []*engine{e.missing}
	for _, name := range slices.Sorted(maps.Keys(e.byName)) {
		all = append(all, e.byName[name])
	}
	return all
}

// runnables returns the watches and checks of all engines, by name.
func (w *watcher) runnables() map[string]service.Runnable {
	all := make(map[string]service.Runnable)
	for name, e := range w.engines.byName {
		suffix := ""
		if name != "" {
			suffix = "/" + name
		}
		all["watcher/cluster"+suffix] = w.watchCluster(e).Run
		if e.Ready != nil {
			all["watcher/ready"+suffix] = w.checkReady(e).Run
		}
	}
	return all
}

// checkReady returns the loop that checks whether an engine answers. All attempts on the engine are decided about when that changes.
func (w *watcher) checkReady(e *engine) *control.Loop {
	check := func(ctx context.Context) (time.Duration, error) {
		limited, cancel := context.WithTimeout(ctx, readyInterval)
		defer cancel()
		err := e.Ready(limited)
		if ctx.Err() == nil && e.note(err, w.deps.Clock()) {
			w.addAll(e)
		}
		return readyInterval, err
	}
	return control.NewLoop("ready", readyInterval, w.deps.Log.With(zap.String("engine", e.name)), check, control.LoopSettings{
		Failing: "the engine does not answer, its runs wait", Working: "the engine answers again",
	})
}

// note records the result of a check, and reports whether the engine is away now and was not before, or the other way round.
func (e *engine) note(err error, now time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.away
	switch {
	case err == nil:
		e.failingSince, e.away = time.Time{}, false
	case e.failingSince.IsZero():
		e.failingSince = now
	default:
		e.away = !now.Before(e.failingSince.Add(outageAfter))
	}
	return e.away != before
}

// isAway reports whether the checks have failed for long enough, and since when, zero for an engine that the settings do not have.
func (e *engine) isAway() (since time.Time, away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failingSince, e.away
}

// addAll queues the attempts on an engine.
func (w *watcher) addAll(e *engine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, m := range w.attempts {
		if w.engines.of(m.doc.Launched) == e {
			e.queue.Add(a)
		}
	}
}

// outageError is the error of an observation that an engine which is away did not answer.
type outageError struct {
	error

	since time.Time // zero if that is not known
}

// Unwrap returns the error of the observation.
func (e *outageError) Unwrap() error { return e.error }

// reportOutage publishes, once in an outage, that the engine of an attempt does not answer, if that is the error of the last observation.
func (w *watcher) reportOutage(ctx context.Context, a attempt, m *tracked, failure error) error {
	outage, ok := errors.AsType[*outageError](failure)
	if !ok || m.reportsOutage || ctx.Err() != nil {
		return nil //nolint:nilerr // failure is what may be reported
	}
	run, err := w.docs.run(ctx, a)
	if err != nil {
		return err
	}
	since := outage.since
	if since.IsZero() {
		since = w.deps.Clock()
	}
	if m.doc.Outage, err = w.docs.updateOutage(ctx, a, true, since); err != nil || m.doc.Outage.IsZero() {
		return err
	}
	if s, ok := verdict.OutageStatus(m.doc.Launched, run, m.doc.Outage, outage.error); ok {
		err = w.deps.Bus.Publish(ctx, s)
	}
	m.reportsOutage = err == nil
	return err
}

// endOutage records that the engine of an attempt answers again, after the status of the attempt was published anew.
func (w *watcher) endOutage(ctx context.Context, a attempt, m *tracked) error {
	if m.doc.Outage.IsZero() {
		return nil
	}
	_, err := w.docs.updateOutage(ctx, a, false, w.deps.Clock())
	if err == nil {
		m.doc.Outage, m.reportsOutage = time.Time{}, false
	}
	return err
}

// missingCluster stands for the cluster of an engine that the settings do not have any more.
type missingCluster struct{}

var errMissing = errors.New("the settings have no such engine any more: put its table in engines back until its runs have ended")

// Observe implements cluster.Observer.
func (missingCluster) Observe(context.Context, cluster.Ref) (cluster.Snapshot, error) {
	return cluster.Snapshot{}, errMissing
}

// Watch implements cluster.Observer.
func (missingCluster) Watch(ctx context.Context, _ func(cluster.Snapshot)) error {
	<-ctx.Done()
	return nil
}

// Occupancy implements cluster.Occupier.
func (missingCluster) Occupancy(context.Context) (cluster.Occupancy, error) {
	return cluster.Occupancy{}, errMissing
}
