package executable

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
)

// Settings of a cluster.
type Settings struct {
	Command []string      // program and arguments
	Timeout time.Duration // of a call; zero means 30 s
	Poll    time.Duration // time between two questions for states; zero means 1 s
	Resync  time.Duration // how often Watch hands everything over again; zero means 30 s
	Log     *zap.Logger
}

// Cluster is a cluster that a program is. It implements the interfaces of package cluster.
type Cluster struct {
	settings Settings
	program  *program

	mu        sync.Mutex
	values    map[attempt]map[string]cluster.Object // ConfigMaps, Secrets and others of attempts, by kind and name
	deletions map[attempt]time.Time                 // when attempts that are being deleted were first seen so
}

// attempt names an attempt of a run.
type attempt struct {
	run    string
	number int
}

// New returns a cluster, without starting its program. The caller closes it.
func New(s Settings) (*Cluster, error) {
	if len(s.Command) == 0 {
		return nil, errors.New("an engine of kind exec needs a command")
	}
	if s.Log == nil {
		s.Log = zap.NewNop()
	}
	s.Timeout, s.Poll, s.Resync = cmp.Or(s.Timeout, 30*time.Second), cmp.Or(s.Poll, time.Second), cmp.Or(s.Resync, 30*time.Second)
	return &Cluster{
		settings: s, program: newProgram(s.Command, s.Timeout),
		values: make(map[attempt]map[string]cluster.Object),
	}, nil
}

// Close ends the copy of the program. What it started goes on.
func (c *Cluster) Close() { c.program.close() }

// Ready returns the reason why the program does not answer now, or nil.
func (c *Cluster) Ready(ctx context.Context) error {
	_, err := c.states(ctx)
	return err
}

// Create implements cluster.Creator. Objects beside the Job are kept in this process until
// the Job is created, which is the last one: after a crash all are created again.
func (c *Cluster) Create(ctx context.Context, o cluster.Object) error {
	at := attemptOf(o)
	j, ok := o.(*batchv1.Job)
	if !ok {
		return c.keep(at, o)
	}
	p, err := newPlan(j, c.valuesOf(at), rand.Text(), time.Now())
	if err != nil {
		return err
	}
	a, err := c.call(ctx, request{Call: callStart, Run: at.run, Attempt: at.number, Plan: p}, "Job "+j.Name)
	if err != nil {
		return err
	}
	if a.Exists {
		return fmt.Errorf("create Job %s: %w", j.Name, cluster.ErrExists)
	}
	j.SetUID(types.UID(a.States[0].Record.UID))
	j.SetCreationTimestamp(metav1.NewTime(a.States[0].Record.Created))
	return nil
}

// keep keeps an object until the attempt is deleted.
func (c *Cluster) keep(at attempt, o cluster.Object) error {
	key := o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.values[at][key]; ok {
		o.SetUID(was.GetUID())
		return fmt.Errorf("%s: %w", key, cluster.ErrExists)
	}
	if c.values[at] == nil {
		c.values[at] = make(map[string]cluster.Object)
	}
	o.SetUID(types.UID(rand.Text()))
	c.values[at][key] = o
	return nil
}

func (c *Cluster) valuesOf(at attempt) values {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := values{configMaps: make(map[string]*corev1.ConfigMap), secrets: make(map[string]*corev1.Secret)}
	for _, o := range c.values[at] {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			v.configMaps[o.Name] = o
		case *corev1.Secret:
			v.secrets[o.Name] = o
		}
	}
	return v
}

func attemptOf(o metav1.Object) attempt {
	n, _ := strconv.Atoi(o.GetLabels()[cluster.LabelAttempt]) // the planner's
	return attempt{o.GetLabels()[cluster.LabelRun], n}
}

// call makes a call. A refusal is about the object of that name.
func (c *Cluster) call(ctx context.Context, q request, object string) (answer, error) {
	a, err := c.program.call(ctx, q)
	switch {
	case err != nil:
		return a, err
	case a.Error == nil:
		return a, nil
	case a.Error.Refused:
		return a, &cluster.RefusedError{Object: object, Message: a.Error.Message}
	}
	return a, fmt.Errorf("%s: %s: %s", c.settings.Command[0], q.Call, a.Error.Message)
}

// states returns all attempts that the program has.
func (c *Cluster) states(ctx context.Context) (map[attempt]state, error) {
	a, err := c.call(ctx, request{Call: callStates}, "the states")
	if err != nil {
		return nil, err
	}
	all := make(map[attempt]state, len(a.States))
	for _, s := range a.States {
		all[attempt{s.Run, s.Attempt}] = s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletions = noteDeletions(all, c.deletions, time.Now())
	return all, nil
}

// Observe implements cluster.Observer.
func (c *Cluster) Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	all, err := c.states(ctx)
	if err != nil {
		return cluster.Snapshot{}, err
	}
	s, ok := all[attempt{r.Run, r.Attempt}]
	if !ok || r.UID != "" && s.Record.UID != r.UID {
		return cluster.Snapshot{}, fmt.Errorf("job %s: %w", r.Job, cluster.ErrNotFound)
	}
	return s.snapshot(), nil
}

// Delete implements cluster.Deleter.
func (c *Cluster) Delete(ctx context.Context, r cluster.Ref) error {
	if r.UID != "" {
		if _, err := c.Observe(ctx, r); err != nil {
			return ignoreNotFound(err)
		}
	}
	at := attempt{r.Run, r.Attempt}
	if _, err := c.call(ctx, request{Call: callDelete, Run: at.run, Attempt: at.number}, "Job "+r.Job); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, at)
	return nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	return err
}

// Stop implements cluster.Stopper.
func (c *Cluster) Stop(ctx context.Context, r cluster.Ref) error {
	_, err := c.call(ctx, request{Call: callStop, Run: r.Run, Attempt: r.Attempt}, "Job "+r.Job)
	return err
}

// Watch implements cluster.Observer, by asking for all states again and again.
func (c *Cluster) Watch(ctx context.Context, handle func(cluster.Snapshot)) error {
	var last states
	for {
		all, err := c.states(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to end
		}
		if err != nil {
			return err
		}
		last.replace(all, c.settings.Resync, handle)
		if !control.Sleep(ctx, c.settings.Poll) {
			return nil
		}
	}
}

// states are those that a watch has read last.
type states struct {
	byAttempt map[attempt]state
	resynced  time.Time // when all of them were handled
}

// replace calls handle for the states that differ from those before, or for all of them if
// that was long ago, and for those that are gone.
func (l *states) replace(all map[attempt]state, resync time.Duration, handle func(cluster.Snapshot)) {
	whole := time.Since(l.resynced) >= resync
	if whole {
		l.resynced = time.Now()
	}
	for at, s := range all {
		if whole || !s.equal(l.byAttempt[at]) {
			handle(s.snapshot())
		}
	}
	for at, s := range l.byAttempt {
		if _, ok := all[at]; !ok {
			handle(cluster.Snapshot{Ref: s.ref()})
		}
	}
	l.byAttempt = all
}

// equal reports whether two states show the same.
func (s state) equal(o state) bool {
	return s.Phase == o.Phase && s.ExitCode == o.ExitCode && s.Reason == o.Reason && s.Message == o.Message &&
		s.Started.Equal(o.Started) && s.Ended.Equal(o.Ended) && s.Deleting == o.Deleting && s.Record.UID == o.Record.UID
}

// Occupancy implements cluster.Occupier. The nodes behind the program are not known.
func (c *Cluster) Occupancy(ctx context.Context) (cluster.Occupancy, error) {
	all, err := c.states(ctx)
	if err != nil {
		return cluster.Occupancy{}, err
	}
	o := cluster.Occupancy{OneMachine: true}
	for _, s := range slices.SortedFunc(maps.Values(all), func(a, b state) int { return cmp.Compare(a.Record.Job, b.Record.Job) }) {
		for _, p := range s.snapshot().Pods {
			if cluster.Alive(p) {
				o.Pods = append(o.Pods, p)
			}
		}
	}
	return o, nil
}

// Labels implements cluster.Labeler: there are no such objects.
func (*Cluster) Labels(context.Context, string, string, string) (map[string]string, error) {
	return nil, cluster.ErrNotFound
}
