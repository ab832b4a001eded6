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
	notBefore  time.Time                    // the receiver is away
	repeated   map[string]time.Time         // when the notices of a group were last sent again
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
	if at := o.openAt(); o.now.Before(at) {
		return action{at: at}
	}
	if i := slices.IndexFunc(waiting, func(d notice.Delivery) bool { return d.Notice.Test }); i >= 0 {
		return action{send: &waiting[i]}
	}
	if at := latest(o.notBefore, o.last().Until); o.now.Before(at) {
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

// due returns the notices that may be sent now: an earlier notice of the same incidents, or of an earlier end of the same set, goes first,
// also in a digest. Without one, at is when the first may be.
func (o observation) due(waiting []notice.Delivery) (due []notice.Delivery, at time.Time) {
	first := o.firstOfGroups(waiting)
	for _, d := range waiting {
		if slices.ContainsFunc(o.partsOf(d), func(part notice.Delivery) bool { return first[groupOf(part)] != d.Notice.ID }) {
			continue
		}
		if o.now.Before(d.Next) {
			at = earliest(at, d.Next)
			continue
		}
		due = append(due, d)
	}
	return due, at
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

// last returns the delivery that the receiver answered last; the zero one if it never did.
func (o observation) last() (last notice.Delivery) {
	for _, d := range o.deliveries {
		if d.Attempts > 0 && d.At.After(last.At) {
			last = d
		}
	}
	return last
}

// openAt returns when the receiver takes anything, tests too: after its pause, and after the wait that it has asked for.
func (o observation) openAt() time.Time {
	at := o.last().At.Add(o.rules.Pause)
	for _, d := range o.deliveries {
		if d.Asked {
			at = latest(at, d.Until)
		}
	}
	return at
}

// settle returns those of the waiting notices that are not sent, as they are stored.
func (o observation) settle(waiting []notice.Delivery) (settled []notice.Delivery) {
	inDigest, h := map[string]string{}, o.history()
	for _, d := range o.deliveries {
		for _, id := range d.Notice.Digest {
			inDigest[id] = d.Notice.ID
		}
	}
	for _, d := range waiting {
		status, why := o.verdict(d.Notice, isEnd(d.Notice) && h.unheard(d))
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

// verdict returns Waiting for a notice that is to be sent, else why it is not. Unheard says that it is the end of what the receiver has
// heard nothing of.
func (o observation) verdict(n notice.Notice, unheard bool) (notice.Status, string) {
	ends := isEnd(n)
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
	case unheard:
		return notice.Muted, "the receiver has not heard of the beginning"
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
	subjects := subjectsOf(n)
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s subject) bool {
		return !slices.ContainsFunc(o.mutes, func(m incident.Mute) bool { return o.matches(m, n.Namespace, s) })
	})
}

// subject is a task that a notice is about.
type subject struct {
	task   string
	labels map[string]string // of the run whose end it is; nil stands for those of the task's newest run
}

// subjectsOf returns the task of each incident and end of a notice.
func subjectsOf(n notice.Notice) (all []subject) {
	for _, i := range n.Incidents {
		all = append(all, subject{task: i.Rule.Task})
	}
	for _, e := range n.Ends {
		all = append(all, subject{e.Task, e.Labels})
	}
	return all
}

// matches reports whether a mute is for a task now.
func (o observation) matches(m incident.Mute, namespace string, s subject) bool {
	if m.Namespace != namespace || m.Task != "" && m.Task != s.task || o.now.Before(m.Since) || !o.now.Before(m.Until) {
		return false
	}
	labels := s.labels
	if labels == nil {
		labels = o.labels[namespace+"/"+s.task]
	}
	for name, value := range m.Labels {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// repeats returns the notices that are sent again now, one for each group, with all incidents of it that the receiver has heard of since
// the group's last end, and when the next is.
func (o observation) repeats() (now []notice.Delivery, at time.Time) {
	if o.rules.Repeat == 0 {
		return nil, time.Time{}
	}
	h := o.history()
	for _, key := range slices.Sorted(maps.Keys(h.groups)) {
		open := h.open(key)
		if len(open) == 0 {
			continue
		}
		d := together(open)
		last := d.At
		if again := o.repeated[key]; again.After(last) {
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

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
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
