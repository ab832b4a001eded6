package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	leaseTime = 15 * time.Second
	lookEvery = 5 * time.Second        // for new notices
	readEvery = time.Hour              // all notices of the receiver, if nothing else makes it
	sendTime  = 2 * time.Minute        // the longest that a receiver may take
	longAway  = 24 * time.Hour         // after which the log says that a notice waits
	lookAgain = 200 * time.Millisecond // after a conflict
	lastWrite = 2 * time.Second        // for the answer that came when the process was asked to stop
)

// worker sends the notices of one receiver.
type worker struct {
	channel receiver.Channel
	store   Store
	now     func() time.Time
	log     *zap.Logger
	leader  *control.Leader
	loop    *control.Loop

	failures int                  // in a row, of the receiver
	until    time.Time            // nothing is sent before
	repeated map[string]time.Time // by group, when its notices were last sent again, as long as that says something
	late     bool                 // the log has said that a notice waits for longAway

	meter  Meter
	oldest time.Time // when the oldest notice was made that waits; zero if none does

	queue []string  // IDs of the notices that waited when there was nothing left to do
	due   time.Time // when there is something to do with the same queue; zero if that is not known
}

func newWorker(c receiver.Channel, st Store, holder string, now func() time.Time, log *zap.Logger) *worker {
	w := &worker{channel: c, store: st, now: now, log: log, repeated: map[string]time.Time{}, meter: noMeter{}}
	w.leader = control.NewLeader(st, "receiver/"+c.Name, holder, leaseTime, control.LeaderSettings{Now: now, Log: log})
	w.loop = control.NewLoop("dispatch to "+c.Name, lookEvery, log, w.round, control.LoopSettings{
		Backoff: control.Backoff{First: time.Second, Max: 30 * time.Second}, Failing: "cannot read or write notices, retrying",
		Working: "reads and writes notices again",
	})
	return w
}

// run works whenever this process has the lease of the receiver.
func (w *worker) run(ctx context.Context) {
	_ = w.leader.Lead(ctx, func(ctx context.Context, _ int64) error { // it returns nil
		defer w.meter.RecordWaiting(w.channel.Name, -1)
		w.forgetTerm()
		return w.loop.Run(ctx)
	})
}

// forgetTerm forgets what an earlier term under the lease has left: another process may have sent, and been answered, since.
func (w *worker) forgetTerm() {
	w.failures, w.until, w.late = 0, time.Time{}, false
	w.queue, w.due, w.oldest = nil, time.Time{}, time.Time{}
	clear(w.repeated)
}

// round does what is due, and returns the time until more is. All notices of the receiver are read only if the queue is not what it was, or
// if it is time to do something.
func (w *worker) round(ctx context.Context) (next time.Duration, err error) {
	queue, err := w.readQueue(ctx)
	if err != nil {
		return 0, err
	}
	if w.now().Before(w.due) && slices.Equal(queue, w.queue) {
		w.recordWaiting()
		return w.wait(w.due), nil
	}
	w.due = time.Time{}
	o, versions, err := w.observe(ctx, queue)
	if err != nil {
		return 0, err
	}
	w.noteLate(o)
	w.oldest = o.oldest()
	w.recordWaiting()
	for begin := o.now; ctx.Err() == nil; o.now = w.now() {
		if o.now.Sub(begin) > lookEvery {
			return -1, nil
		}
		o.notBefore = w.until
		did, at, err := w.act(ctx, &o, versions)
		// another process was here, or the list is older than its writes
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) {
			return lookAgain, nil
		}
		if err != nil {
			return 0, err
		}
		if !did {
			w.rest(o, at)
			return w.wait(at), nil
		}
	}
	return 0, nil
}

// rest notes that there is nothing to do until a time, or until the queue changes.
func (w *worker) rest(o observation, at time.Time) {
	w.queue, w.due, w.oldest = nil, o.now.Add(readEvery), o.oldest()
	maps.DeleteFunc(w.repeated, func(_ string, last time.Time) bool { return !o.now.Before(last.Add(o.rules.Repeat)) })
	w.recordWaiting()
	if !at.IsZero() && at.Before(w.due) {
		w.due = at
	}
	for _, d := range o.deliveries {
		if d.Status == notice.Waiting {
			w.queue = append(w.queue, d.Notice.ID)
		}
	}
	slices.Sort(w.queue)
}

// wait returns how long to wait until a time, at most until the next look.
func (w *worker) wait(at time.Time) time.Duration {
	if at.IsZero() {
		return lookEvery
	}
	if d := at.Sub(w.now()); d > 0 {
		return min(d, lookEvery)
	}
	return -1
}

// readQueue returns the IDs of the notices of the receiver that are said to wait, in order.
func (w *worker) readQueue(ctx context.Context) ([]string, error) {
	prefix := notice.Key(w.channel.Name, "")
	var ids []string
	for d, err := range store.AllDocs(ctx, w.store, store.KindUnsentNotice, prefix) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, strings.TrimPrefix(d.Key, prefix))
	}
	return ids, nil
}

// observe reads what is known of the receiver, and the versions of the documents of its notices. It removes notices that do not wait from
// the queue.
func (w *worker) observe(ctx context.Context, queue []string) (o observation, versions map[string]int64, err error) {
	o = observation{
		rules: w.channel.Rules, labels: map[string]map[string]string{}, notBefore: w.until, repeated: w.repeated, now: w.now(),
	}
	versions = map[string]int64{}
	prefix := notice.Key(w.channel.Name, "")
	for d, err := range store.All[notice.Delivery](ctx, w.store, store.KindDelivery, prefix) {
		switch {
		case err != nil && d.Key == "":
			return o, nil, err
		case err != nil:
			w.log.Warn("left out a notice that cannot be read", zap.Error(err))
			versions[strings.TrimPrefix(d.Key, prefix)] = d.Version // known, and not waiting
			continue
		}
		versions[d.Value.Notice.ID] = d.Version
		o.deliveries = append(o.deliveries, d.Value)
	}
	if err := w.readQueued(ctx, queue, &o, versions); err != nil {
		return o, nil, err
	}
	if !slices.ContainsFunc(o.deliveries, func(d notice.Delivery) bool { return d.Status == notice.Waiting }) {
		return o, versions, nil
	}
	for m, err := range store.All[incident.Mute](ctx, w.store, store.KindMute, "") {
		if err != nil {
			return o, nil, err
		}
		o.mutes = append(o.mutes, m.Value)
	}
	return o, versions, w.readLabels(ctx, o)
}

// readQueued adds the notices of a queue that the list lacks, and removes those that do not wait from the queue.
func (w *worker) readQueued(ctx context.Context, queue []string, o *observation, versions map[string]int64) error {
	waiting := map[string]bool{}
	for _, d := range o.deliveries {
		waiting[d.Notice.ID] = d.Status == notice.Waiting
	}
	for _, id := range queue {
		if versions[id] == 0 {
			d, version, found, err := store.Find[notice.Delivery](ctx, w.store, store.KindDelivery, notice.Key(w.channel.Name, id))
			if err != nil {
				return fmt.Errorf("read notice %s: %w", id, err)
			}
			if found {
				versions[id], waiting[id] = version, d.Status == notice.Waiting
				o.deliveries = append(o.deliveries, d)
			}
		}
		if waiting[id] {
			continue
		}
		if err := w.dequeue(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// dequeue removes a notice from the queue.
func (w *worker) dequeue(ctx context.Context, id string) error {
	if err := w.store.DeleteDoc(ctx, store.Doc{Kind: store.KindUnsentNotice, Key: notice.Key(w.channel.Name, id)}); err != nil {
		return fmt.Errorf("remove notice %s from the queue: %w", id, err)
	}
	return nil
}

// readLabels reads the labels of the tasks for which there are mutes with labels.
func (w *worker) readLabels(ctx context.Context, o observation) error {
	labelled := map[string]bool{} // namespaces
	for _, m := range o.mutes {
		labelled[m.Namespace] = labelled[m.Namespace] || len(m.Labels) > 0
	}
	for _, d := range o.deliveries {
		if d.Status != notice.Waiting || !labelled[d.Notice.Namespace] {
			continue
		}
		for _, s := range subjectsOf(d.Notice) {
			name := d.Notice.Namespace + "/" + s.task
			if _, ok := o.labels[name]; ok || s.labels != nil {
				continue
			}
			set, _, _, err := store.Find[incident.RuleSet](ctx, w.store, store.KindRuleSet, name)
			if err != nil {
				return fmt.Errorf("read the labels of task %q: %w", s.task, err)
			}
			o.labels[name] = set.Labels
		}
	}
	return nil
}

// act decides what is next, and does it. If that is nothing, at is when to decide again.
func (w *worker) act(ctx context.Context, o *observation, versions map[string]int64) (did bool, at time.Time, err error) {
	p := decide(*o)
	for _, d := range p.forget {
		if err := w.forget(ctx, o, versions, d); err != nil {
			return true, at, err
		}
	}
	for _, d := range p.settle {
		if err := w.replace(ctx, o, versions, d); err != nil {
			return true, at, err
		}
		w.meter.RecordNotice(w.channel.Name, string(d.Status))
		w.log.Info("a notice is not sent", zap.String("notice", d.Notice.ID), zap.String("namespace", d.Notice.Namespace),
			zap.String("status", string(d.Status)), zap.String("why", d.Answer))
	}
	switch {
	case len(p.forget)+len(p.settle) > 0:
		return true, at, nil
	case p.digest != nil:
		if err := notice.Enqueue(ctx, w.store, p.digest.Notice, o.now); err != nil {
			return true, at, err
		}
		o.deliveries, versions[p.digest.Notice.ID] = append(o.deliveries, *p.digest), 1
		return true, at, nil
	case p.send != nil:
		return true, at, w.send(ctx, o, versions, *p.send)
	}
	for _, d := range p.repeat {
		if err := w.repeat(ctx, o, versions, d); err != nil {
			return true, at, err
		}
	}
	return len(p.repeat) > 0, p.at, nil
}

// replace stores a delivery in place of the version that is known.
func (w *worker) replace(ctx context.Context, o *observation, versions map[string]int64, d notice.Delivery) error {
	version, err := store.Replace(ctx, w.store, store.KindDelivery, key(d.Notice), versions[d.Notice.ID], d)
	if err != nil {
		return err
	}
	versions[d.Notice.ID] = version
	i := slices.IndexFunc(o.deliveries, func(is notice.Delivery) bool { return is.Notice.ID == d.Notice.ID })
	o.deliveries[i] = d
	if d.Status == notice.Waiting {
		return nil
	}
	return w.dequeue(ctx, d.Notice.ID)
}

// forget deletes the version of a delivery that is known.
func (w *worker) forget(ctx context.Context, o *observation, versions map[string]int64, d notice.Delivery) error {
	err := w.store.DeleteDoc(ctx, store.Doc{Kind: store.KindDelivery, Key: key(d.Notice), Version: versions[d.Notice.ID]})
	if err != nil {
		return err
	}
	o.deliveries = slices.DeleteFunc(o.deliveries, func(is notice.Delivery) bool { return is.Notice.ID == d.Notice.ID })
	return nil
}

// send sends a notice, and stores the answer.
func (w *worker) send(ctx context.Context, o *observation, versions map[string]int64, d notice.Delivery) error {
	d = begun(d, w.now())
	if err := w.replace(ctx, o, versions, d); err != nil {
		return err
	}
	answer, err := w.deliver(ctx, d.Notice)
	next := answered(d, answer, err, w.failures+1, w.now())
	switch {
	case next.Status != notice.Waiting:
		w.noteAnswer(next)
	case ctx.Err() == nil:
		w.noteFailure(err, next.Until)
	case !next.Asked: // it is this process that ends
		next.Until = time.Time{}
	}
	return w.record(ctx, o, versions, next)
}

// deliver hands a notice to the receiver.
func (w *worker) deliver(ctx context.Context, n notice.Notice) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return w.channel.Receiver.Send(ctx, n)
}

// record stores the answer to a notice. It tries for as long as the process may, since a notice without its answer is sent again.
func (w *worker) record(ctx context.Context, o *observation, versions map[string]int64, d notice.Delivery) error {
	wait := control.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
		err := w.replace(try, o, versions, d)
		cancel()
		if err == nil || errors.Is(err, store.ErrConflict) || !control.Sleep(ctx, wait.Next()) {
			return err
		}
	}
}

// repeat sends a notice again, with its incidents as they are now, unless all of them are over.
func (w *worker) repeat(ctx context.Context, o *observation, versions map[string]int64, d notice.Delivery) error {
	open, n := false, d.Notice
	for k, i := range n.Incidents {
		is, _, found, err := store.Find[incident.Incident](ctx, w.store, store.KindIncident, n.Namespace+"/"+i.ID)
		if err != nil {
			return fmt.Errorf("read incident %s: %w", i.ID, err)
		}
		if found {
			n.Incidents[k] = is
		}
		open = open || found && !is.State.Over()
	}
	w.repeated[groupOf(d)] = w.now()
	if !open {
		return nil
	}
	_, err := w.deliver(ctx, n)
	if err == nil {
		w.noteSuccess()
		return nil
	}
	wait := askedWait(err)
	w.noteFailure(err, w.now().Add(pause(w.failures+1, wait)))
	if wait == 0 {
		return nil
	}
	i := slices.IndexFunc(o.deliveries, func(is notice.Delivery) bool { return is.Notice.ID == d.Notice.ID })
	is := o.deliveries[i]
	is.Until, is.Asked = w.until, true
	return w.replace(ctx, o, versions, is)
}

// noteFailure leaves the receiver alone until a time after a failure, and logs the first of a row.
func (w *worker) noteFailure(err error, until time.Time) {
	w.failures++
	w.until = until
	if w.failures == 1 {
		w.log.Warn("the receiver did not take a notice, retrying", zap.Error(err))
	}
}

// noteAnswer logs what became of a notice.
func (w *worker) noteAnswer(d notice.Delivery) {
	w.meter.RecordNotice(w.channel.Name, string(d.Status))
	fields := []zap.Field{
		zap.String("notice", d.Notice.ID), zap.String("namespace", d.Notice.Namespace), zap.String("became", string(d.Notice.Became)),
		zap.Int("attempts", d.Attempts), zap.String("answer", d.Answer),
	}
	if d.Status == notice.Refused {
		w.log.Warn("the receiver refused a notice", fields...)
		return
	}
	w.noteSuccess()
	w.log.Info("sent a notice", fields...)
}

// noteSuccess ends a row of failures.
func (w *worker) noteSuccess() {
	if w.failures > 0 {
		w.log.Info("the receiver takes notices again", zap.Int("failures", w.failures))
	}
	w.failures, w.until, w.late = 0, time.Time{}, false
}

// noteLate logs once that a notice could not be sent for a day.
func (w *worker) noteLate(o observation) {
	for _, d := range o.deliveries {
		if !w.late && d.Status == notice.Waiting && d.Attempts > 0 && o.now.Sub(d.Notice.Made) > longAway {
			w.late = true
			w.log.Error("a notice has waited for a day: check the receiver and its settings",
				zap.String("notice", d.Notice.ID), zap.Time("made", d.Notice.Made), zap.String("answer", d.Answer))
		}
	}
}
