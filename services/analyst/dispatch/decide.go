package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
)

// The pauses before a notice, and before anything for a receiver that is away, is sent again: they double from the first to the longest.
const (
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
)

// perHour is the time that the rate of a receiver is for.
const perHour = time.Hour

// keepFor is how long the document of a notice stays after its end. The group of its incidents knows that it was made, so nobody makes it
// again.
const keepFor = 90 * 24 * time.Hour

// testLife is how long after its request a test is sent.
const testLife = 10 * time.Minute

// digestSize is how many incidents a digest has.
const digestSize = 10

// observation is what is known of one receiver.
type observation struct {
	rules      receiver.Rules
	deliveries []notice.Delivery
	mutes      []incident.Mute
	labels     map[string]map[string]string // of the newest run of a task, by namespace/task
	notBefore  time.Time                    // the receiver is away, or has asked to wait
	repeated   map[string]time.Time         // when a notice was last sent again, by its ID
	now        time.Time
}

// action is what is done next: the first of forget, settle, digest, send and repeat that is not empty.
type action struct {
	forget []notice.Delivery // are deleted
	settle []notice.Delivery // are written, and not sent
	digest *notice.Delivery  // is created
	send   *notice.Delivery
	repeat []notice.Delivery // are sent again if their incidents go on
	at     time.Time         // when to decide again, if there is nothing to do; zero if that follows from a new notice alone
}

// decide returns what is done next for one receiver.
func decide(o observation) action {
	waiting := byAge(o.deliveries)
	waiting = slices.DeleteFunc(waiting, func(d notice.Delivery) bool { return d.Status != notice.Waiting })
	if old := o.old(); len(old) > 0 {
		return action{forget: old}
	}
	if settled := o.settle(waiting); len(settled) > 0 {
		return action{settle: settled}
	}
	if i := slices.IndexFunc(waiting, func(d notice.Delivery) bool { return d.Notice.Test }); i >= 0 {
		return action{send: &waiting[i]}
	}
	if o.now.Before(o.notBefore) {
		return action{at: o.notBefore}
	}
	if at := o.lastSend().Add(o.rules.Pause); o.now.Before(at) {
		return action{at: at}
	}
	p := o.next(waiting)
	if p.send != nil || p.digest != nil {
		return p
	}
	repeat, at := o.repeats()
	p.repeat, p.at = repeat, earliest(p.at, at)
	return p
}

// next returns the notice that is sent next, or the digest that is made first.
func (o observation) next(waiting []notice.Delivery) action {
	if len(waiting) == 0 {
		return action{}
	}
	if end, quiet := o.rules.Quiet.End(o.now); quiet {
		return action{at: end}
	}
	left, more := o.budget()
	if left == 0 {
		return action{at: more}
	}
	if fresh := unsent(waiting); left == 1 && o.rules.Rate > 0 && len(fresh) > 1 && !slices.ContainsFunc(waiting, isDigest) {
		return action{digest: digestOf(fresh, o.now)}
	}
	due, at := o.due(waiting)
	if len(due) == 0 {
		return action{at: at}
	}
	slices.SortStableFunc(due, func(a, b notice.Delivery) int {
		return cmp.Or(-compareBool(left == 1 && isDigest(a), left == 1 && isDigest(b)), cmp.Compare(a.Attempts, b.Attempts))
	})
	return action{send: &due[0]}
}

// due returns the notices that may be sent now: an earlier notice of the same incidents, or of an earlier end of the same set, goes first.
// Without one, at is when the first may be.
func (o observation) due(waiting []notice.Delivery) (due []notice.Delivery, at time.Time) {
	subjects := map[string]bool{}
	for _, d := range waiting {
		subject := subjectOf(d.Notice)
		if subject != "" && subjects[subject] {
			continue
		}
		subjects[subject] = true
		if o.now.Before(d.Next) {
			at = earliest(at, d.Next)
			continue
		}
		due = append(due, d)
	}
	return due, at
}

// subjectOf returns the incidents, or the run or set, that a notice is about; empty for a test and a digest.
func subjectOf(n notice.Notice) string {
	switch {
	case n.Group != "":
		return n.Namespace + "/" + n.Group
	case len(n.Ends) == 1 && len(n.Digest) == 0:
		return "end/" + n.Ends[0].ID
	}
	return ""
}

// budget returns how many notices may be sent now, and when one more may be if that is none. Without a rate, there are always 2.
func (o observation) budget() (left int, more time.Time) {
	if o.rules.Rate == 0 {
		return 2, time.Time{}
	}
	var sent []time.Time
	for _, d := range o.deliveries {
		if d.Status == notice.Sent && !d.Notice.Test && d.At.After(o.now.Add(-perHour)) {
			sent = append(sent, d.At)
		}
	}
	if len(sent) < o.rules.Rate {
		return o.rules.Rate - len(sent), time.Time{}
	}
	slices.SortFunc(sent, time.Time.Compare)
	return 0, sent[len(sent)-o.rules.Rate].Add(perHour)
}

// oldest returns when the oldest notice that waits was made; zero if none does.
func (o observation) oldest() (at time.Time) {
	for _, d := range o.deliveries {
		if d.Status == notice.Waiting {
			at = earliest(at, d.Notice.Made)
		}
	}
	return at
}

// lastSend returns when the receiver last answered.
func (o observation) lastSend() (last time.Time) {
	for _, d := range o.deliveries {
		if d.Attempts > 0 && d.At.After(last) {
			last = d.At
		}
	}
	return last
}

// old returns the notices whose documents are deleted: those that ended long ago, and are not sent again.
func (o observation) old() (old []notice.Delivery) {
	newest := o.newestOfGroups()
	for _, d := range o.deliveries {
		repeated := o.rules.Repeat > 0 && d.Status == notice.Sent && d.Notice.Became == incident.Firing &&
			newest[groupOf(d)].Notice.ID == d.Notice.ID
		if d.Status != notice.Waiting && !repeated && o.now.Sub(d.At) > keepFor {
			old = append(old, d)
		}
	}
	return old
}

// settle returns those of the waiting notices that are not sent, as they are stored.
func (o observation) settle(waiting []notice.Delivery) (settled []notice.Delivery) {
	inDigest, muted := map[string]string{}, map[string]bool{}
	for _, d := range o.deliveries {
		for _, id := range d.Notice.Digest {
			inDigest[id] = d.Notice.ID
		}
		muted[d.Notice.ID] = d.Status == notice.Muted
	}
	for _, d := range waiting {
		status, why := o.verdict(d.Notice, muted[d.Notice.First])
		if digest := inDigest[d.Notice.ID]; digest != "" {
			status, why, d.Digest = notice.Summed, "summed up in digest "+digest, digest
		}
		if status == notice.Waiting {
			continue
		}
		d.Status, d.Answer, d.At, d.Next, d.Sending = status, why, o.now, time.Time{}, time.Time{}
		settled = append(settled, d)
	}
	return settled
}

// verdict returns Waiting for a notice that is to be sent, else why it is not.
func (o observation) verdict(n notice.Notice, firstMuted bool) (notice.Status, string) {
	ends := n.Became == incident.Resolved || n.Became == incident.Dismissed
	switch {
	case n.Test && o.now.Sub(n.Made) > testLife:
		return notice.Refused, "the test was not sent: nobody waits for it any more"
	case n.Test || len(n.Digest) > 0:
	case !o.rules.Allows(n.Namespace):
		return notice.Refused, "the settings do not let namespace " + n.Namespace + " use this receiver"
	case o.rules.SkipEnds && n.Became == notice.Ended:
		return notice.Muted, "this receiver gets no ends of runs"
	case o.rules.SkipResolved && ends:
		return notice.Muted, "this receiver gets no ends of incidents"
	case ends && firstMuted:
		return notice.Muted, "the beginning of the incident was muted"
	case !ends && o.small(n):
		return notice.Muted, "the change is smaller than the receiver's min_change"
	case o.muted(n):
		return notice.Muted, "muted"
	}
	return notice.Waiting, ""
}

// small reports whether all incidents of a notice are changes that the receiver does not get.
func (o observation) small(n notice.Notice) bool {
	return len(n.Incidents) > 0 && !slices.ContainsFunc(n.Incidents, func(i incident.Incident) bool {
		return i.Magnitude == nil || i.Size() >= o.rules.MinChange
	})
}

// muted reports whether the tasks of all incidents and ends of a notice are muted.
func (o observation) muted(n notice.Notice) bool {
	tasks := tasksOf(n)
	return len(tasks) > 0 && !slices.ContainsFunc(tasks, func(task string) bool {
		return !slices.ContainsFunc(o.mutes, func(m incident.Mute) bool { return o.matches(m, n.Namespace, task) })
	})
}

// tasksOf returns the task of each incident and end of a notice.
func tasksOf(n notice.Notice) (tasks []string) {
	for _, i := range n.Incidents {
		tasks = append(tasks, i.Rule.Task)
	}
	for _, e := range n.Ends {
		tasks = append(tasks, e.Task)
	}
	return tasks
}

// matches reports whether a mute is for the incidents of a task now.
func (o observation) matches(m incident.Mute, namespace, task string) bool {
	if m.Namespace != namespace || m.Task != "" && m.Task != task || o.now.Before(m.Since) || !o.now.Before(m.Until) {
		return false
	}
	labels := o.labels[namespace+"/"+task]
	for name, value := range m.Labels {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// groupOf returns what the notices of the same incidents have in common.
func groupOf(d notice.Delivery) string {
	return d.Notice.Namespace + "/" + cmp.Or(d.Notice.Group, d.Notice.ID)
}

// newestOfGroups returns the newest notice of each group that the receiver has or is to have.
func (o observation) newestOfGroups() map[string]notice.Delivery {
	newest := map[string]notice.Delivery{}
	for _, d := range byAge(o.deliveries) {
		if !d.Notice.Test && d.Status != notice.Muted && d.Status != notice.Refused {
			newest[groupOf(d)] = d
		}
	}
	return newest
}

// repeats returns the notices that are sent again now, as the newest of their incidents, and when the next is.
func (o observation) repeats() (now []notice.Delivery, at time.Time) {
	if o.rules.Repeat == 0 {
		return nil, time.Time{}
	}
	newest := o.newestOfGroups()
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		d := newest[key]
		if d.Status != notice.Sent || d.Notice.Became != incident.Firing {
			continue
		}
		last := d.At
		if again := o.repeated[d.Notice.ID]; again.After(last) {
			last = again
		}
		if next := last.Add(o.rules.Repeat); o.now.Before(next) {
			at = earliest(at, next)
			continue
		}
		now = append(now, d)
	}
	return now, at
}

// begun returns a delivery whose send begins now. One whose send began before, and has no answer, may have arrived.
func begun(d notice.Delivery, now time.Time) notice.Delivery {
	d.Notice.Again = d.Notice.Again || !d.Sending.IsZero()
	d.Sending = now
	d.Attempts++
	return d
}

// digestOf returns the delivery that sums up others, the oldest first, with the newest state of each of their incidents and sets.
func digestOf(of []notice.Delivery, now time.Time) *notice.Delivery {
	n := notice.Notice{Receiver: of[0].Notice.Receiver, Namespace: of[0].Notice.Namespace, Became: incident.Resolved, Made: now}
	incidents := map[string]incident.Incident{}
	ids := []string{"digest", n.Receiver}
	for _, d := range of {
		n.Digest = append(n.Digest, d.Notice.ID)
		if n.More += d.Notice.More; d.Notice.Namespace != n.Namespace {
			n.Namespace = ""
		}
		for _, i := range d.Notice.Incidents {
			incidents[i.ID] = i
		}
		for _, e := range d.Notice.Ends {
			n.Ends = append(slices.DeleteFunc(n.Ends, func(earlier notice.End) bool { return earlier.ID == e.ID }), e)
		}
	}
	n.ID = incident.ID(append(ids, n.Digest...)...)
	n.First = n.ID
	n.Incidents = slices.SortedFunc(maps.Values(incidents), incident.ByWorst)
	switch {
	case len(n.Incidents) == 0:
		n.Became = notice.Ended
	case slices.ContainsFunc(n.Incidents, func(i incident.Incident) bool { return !i.State.Over() }):
		n.Became = incident.Firing
	}
	if over := len(n.Ends) - digestSize; over > 0 {
		n.Ends, n.More = n.Ends[:digestSize], n.More+over
	}
	if over := len(n.Incidents) - digestSize; over > 0 {
		n.Incidents, n.More = n.Incidents[:digestSize], n.More+over
	}
	return &notice.Delivery{Notice: n, Status: notice.Waiting, At: now}
}

// unsent returns the notices that nobody can have yet, and that are no digests.
func unsent(waiting []notice.Delivery) (all []notice.Delivery) {
	for _, d := range waiting {
		if !isDigest(d) && d.Sending.IsZero() && !d.Notice.Again {
			all = append(all, d)
		}
	}
	return all
}

func isDigest(d notice.Delivery) bool { return len(d.Notice.Digest) > 0 }

// byAge returns deliveries by the age of their notices, the oldest first.
func byAge(all []notice.Delivery) []notice.Delivery {
	return slices.SortedFunc(slices.Values(all), func(a, b notice.Delivery) int {
		return cmp.Or(a.Notice.Made.Compare(b.Notice.Made), cmp.Compare(a.Notice.ID, b.Notice.ID))
	})
}

// pause returns the wait after a number of failures in a row: as long as the receiver asks to wait, zero if it does not say.
func pause(failures int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	return min(firstPause<<min(max(failures-1, 0), 10), longestPause)
}

// earliest returns the earlier of two times; a zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
