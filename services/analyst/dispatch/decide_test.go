package dispatch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/hours"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// noon is the time of the tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// waiting returns the delivery of a notice that was made some time ago, each in a group of its own.
func waiting(id string, age time.Duration, change ...func(*notice.Delivery)) notice.Delivery {
	size := store.Float(0.1)
	d := notice.Delivery{
		Notice: notice.Notice{
			ID: id, Receiver: "team", Namespace: "perf", Group: id, First: id, Became: incident.Firing, Made: noon.Add(-age),
			Incidents: []incident.Incident{{ID: "of " + id, State: incident.Firing, Magnitude: &size, Rule: incident.Rule{Task: "sums"}}},
		},
		Status: notice.Waiting, At: noon.Add(-age),
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func sent(ago time.Duration) func(*notice.Delivery) {
	return func(d *notice.Delivery) { d.Status, d.Attempts, d.At = notice.Sent, 1, noon.Add(-ago) }
}

func resolved(first string) func(*notice.Delivery) {
	return func(d *notice.Delivery) {
		d.Notice.Became, d.Notice.First, d.Notice.Group, d.Notice.Incidents[0].State = incident.Resolved, first, first, incident.Resolved
	}
}

// joins puts a notice into the group of n1.
func joins(d *notice.Delivery) { d.Notice.First, d.Notice.Group = "n1", "n1" }

// summed puts a notice into the digest d1.
func summed(d *notice.Delivery) { d.Status, d.Digest = notice.Summed, "d1" }

// digest makes a notice one that sums up others.
func digest(of ...string) func(*notice.Delivery) {
	return func(d *notice.Delivery) { d.Notice.Group, d.Notice.Digest = "", of }
}

func with(status notice.Status) func(*notice.Delivery) {
	return func(d *notice.Delivery) { d.Status = status }
}

func failed(times int, next time.Duration) func(*notice.Delivery) {
	return func(d *notice.Delivery) {
		d.Attempts, d.Next, d.At = times, noon.Add(next), noon.Add(-time.Minute)
	}
}

// alone has the receiver left alone for some time after an attempt, because it asked for that or because it failed.
func alone(wait time.Duration, asked bool) func(*notice.Delivery) {
	return func(d *notice.Delivery) { d.Until, d.Asked = noon.Add(wait), asked }
}

// ended makes a notice that of the end of a run.
func ended(d *notice.Delivery) {
	d.Notice.Became, d.Notice.Incidents, d.Notice.Group = notice.Ended, nil, ""
	d.Notice.Ends = []notice.End{{ID: "r-" + d.Notice.ID, Task: "sums"}}
}

// endOf makes a notice of an end that of the end of a set.
func endOf(set string) func(*notice.Delivery) {
	return func(d *notice.Delivery) { d.Notice.Ends[0].ID, d.Notice.Ends[0].Set = set, true }
}

func isTest(d *notice.Delivery) { d.Notice.Test = true }

// inWords returns an action as a sentence.
func inWords(p action) string {
	switch {
	case len(p.forget) > 0:
		return "forget " + p.forget[0].Notice.ID
	case len(p.settle) > 0:
		var all []string
		for _, d := range p.settle {
			all = append(all, fmt.Sprintf("%s is %s: %s", d.Notice.ID, d.Status, d.Answer))
		}
		return strings.Join(all, ". ")
	case p.digest != nil:
		ends := ""
		if n := len(p.digest.Notice.Ends); n > 0 {
			ends = fmt.Sprintf("%d ends, ", n)
		}
		return fmt.Sprintf("digest of %v, %d incidents, %s%d more", p.digest.Notice.Digest, len(p.digest.Notice.Incidents), ends, p.digest.Notice.More)
	case p.send != nil:
		return "send " + p.send.Notice.ID
	case len(p.repeat) > 0:
		text := "repeat " + p.repeat[0].Notice.ID
		if all := p.repeat[0].Notice.Incidents; len(all) > 1 {
			for _, i := range all {
				text += ", " + i.ID
			}
		}
		return text
	case p.at.IsZero():
		return "nothing"
	}
	return "wait " + p.at.Sub(noon).String()
}

func TestWhatIsDoneNextForAReceiver(t *testing.T) {
	quiet, err := hours.Parse("22:00-13:00", "")
	if err != nil {
		t.Fatal(err)
	}
	mute := incident.Mute{Namespace: "perf", Task: "sums", Since: noon.Add(-time.Hour), Until: noon.Add(time.Hour)}
	labelled := mute
	labelled.Labels = map[string]string{"team": "a"}
	all := []notice.Delivery{waiting("n1", 3*time.Hour, sent(30*time.Minute)), waiting("n2", time.Hour), waiting("n3", time.Minute)}
	summary := waiting("d1", 0, digest("n2", "n3"))
	for name, tt := range map[string]struct {
		o    observation
		want string
	}{
		"a new notice is sent at once":                            {observation{deliveries: []notice.Delivery{waiting("n1", 0)}}, "send n1"},
		"the oldest notice is sent first":                         {observation{deliveries: []notice.Delivery{waiting("n1", time.Second), waiting("n2", time.Hour)}}, "send n2"},
		"a notice that failed goes after those that have not":     {observation{deliveries: []notice.Delivery{waiting("n1", time.Hour, failed(3, -1)), waiting("n2", 0)}}, "send n2"},
		"a notice that failed waits for its pause":                {observation{deliveries: []notice.Delivery{waiting("n1", time.Hour, failed(1, time.Second))}}, "wait 1s"},
		"a later notice of the same incidents waits for it":       {observation{deliveries: []notice.Delivery{waiting("n1", time.Hour, failed(1, time.Second)), waiting("n2", 0, resolved("n1"))}}, "wait 1s"},
		"what is sent, refused, muted or summed up is done":       {observation{deliveries: []notice.Delivery{waiting("n1", 0, with(notice.Refused)), waiting("n2", 0, with(notice.Muted)), waiting("n3", 0, with(notice.Summed)), waiting("n4", 0, sent(time.Hour))}}, "nothing"},
		"a receiver that is away is asked when its pause is over": {observation{deliveries: []notice.Delivery{waiting("n1", 0)}, notBefore: noon.Add(time.Minute)}, "wait 1m0s"},
		"two notices have the receiver's pause between them":      {observation{rules: receiver.Rules{Pause: time.Second}, deliveries: []notice.Delivery{waiting("n1", 0), waiting("n2", 0, sent(400*time.Millisecond))}}, "wait 600ms"},

		"a receiver that failed last is left alone": {observation{deliveries: []notice.Delivery{
			waiting("n1", time.Hour, failed(1, 5*time.Second), alone(5*time.Second, false)), waiting("n2", 0),
		}}, "wait 5s"},
		"a receiver that has answered since is not": {observation{deliveries: []notice.Delivery{
			waiting("n1", time.Hour, failed(1, 5*time.Second), alone(5*time.Second, false)), waiting("n2", 0, sent(time.Second)), waiting("n3", 0),
		}}, "send n3"},
		"a receiver that asked to wait gets nothing, and no test": {observation{deliveries: []notice.Delivery{
			waiting("n1", time.Hour, sent(time.Hour), alone(time.Minute, true)), waiting("n2", 0, sent(time.Second)), waiting("n3", 0), waiting("t1", 0, isTest),
		}}, "wait 1m0s"},
		"a test that is asked to wait has all wait": {observation{deliveries: []notice.Delivery{
			waiting("t1", time.Hour, isTest, failed(1, 0), with(notice.Refused), alone(time.Minute, true)), waiting("n1", 0),
		}}, "wait 1m0s"},
		"a receiver that asked to wait has nothing sent again": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", time.Hour, sent(time.Hour), alone(time.Minute, true)),
		}}, "wait 1m0s"},
		"a test is sent to a receiver that is away": {observation{deliveries: []notice.Delivery{
			waiting("n1", time.Hour, failed(1, 5*time.Second), alone(5*time.Second, false)), waiting("t1", 0, isTest),
		}, notBefore: noon.Add(time.Minute)}, "send t1"},
		"a test has the receiver's pause before it": {observation{rules: receiver.Rules{Pause: time.Second}, deliveries: []notice.Delivery{
			waiting("t1", 0, isTest), waiting("t0", 0, isTest, sent(400*time.Millisecond)),
		}}, "wait 600ms"},

		"a namespace that may not use the receiver is refused": {observation{rules: receiver.Rules{Namespaces: []string{"ops"}}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "n1 is refused: the settings do not let namespace perf use this receiver"},
		"a small change is left out":                           {observation{rules: receiver.Rules{MinChange: 0.2}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "n1 is muted: the change is smaller than the receiver's min_change"},
		"an incident without a change is never small":          {observation{rules: receiver.Rules{MinChange: 0.2}, deliveries: []notice.Delivery{waiting("n1", 0, func(d *notice.Delivery) { d.Notice.Incidents[0].Magnitude = nil })}}, "send n1"},
		"an end is left out where it is not wanted":            {observation{rules: receiver.Rules{SkipResolved: true}, deliveries: []notice.Delivery{waiting("n1", 0, resolved("n0"))}}, "n1 is muted: this receiver gets no ends of incidents"},
		"an end is left out whose beginning was muted":         {observation{deliveries: []notice.Delivery{waiting("n1", time.Hour, with(notice.Muted)), waiting("n2", 0, resolved("n1"))}}, "n2 is muted: the receiver has not heard of the beginning"},
		"an end is left out whose beginning was refused":       {observation{deliveries: []notice.Delivery{waiting("n1", time.Hour, with(notice.Refused)), waiting("n2", 0, resolved("n1"))}}, "n2 is muted: the receiver has not heard of the beginning"},
		"an end is sent after an update that was": {observation{deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, with(notice.Muted)), waiting("n2", 2*time.Hour, joins, sent(time.Hour)), waiting("n3", 0, resolved("n1")),
		}}, "send n3"},
		"an end is sent although an update before it was muted": {observation{deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, sent(3*time.Hour)), waiting("n2", 2*time.Hour, joins, with(notice.Muted)), waiting("n3", 0, resolved("n1")),
		}}, "send n3"},
		"an end is that of the last beginning": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, with(notice.Muted)), waiting("n2", 3*time.Hour, resolved("n1"), with(notice.Muted)),
			waiting("n3", 2*time.Hour, joins, sent(time.Hour)), waiting("n4", 0, resolved("n1")),
		}}, "send n4"},
		"an end is left out whose last beginning was muted": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, sent(4*time.Hour)), waiting("n2", 3*time.Hour, resolved("n1"), sent(3*time.Hour)),
			waiting("n3", 2*time.Hour, joins, with(notice.Muted)), waiting("n4", 0, resolved("n1")),
		}}, "n4 is muted: the receiver has not heard of the beginning"},
		"an end is sent to a receiver that has not heard of the one before it": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, sent(4*time.Hour)), waiting("n2", 3*time.Hour, resolved("n1"), with(notice.Muted)),
			waiting("n3", 2*time.Hour, joins, with(notice.Muted)), waiting("n4", 0, resolved("n1")),
		}}, "send n4"},
		"an end is sent after a digest that had the beginning": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, summed), waiting("d1", 3*time.Hour, digest("n1"), sent(3*time.Hour)), waiting("n2", 0, resolved("n1")),
		}}, "send n2"},
		"an end is left out whose beginning was in a digest that was refused": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, summed), waiting("d1", 3*time.Hour, digest("n1"), with(notice.Refused)), waiting("n2", 0, resolved("n1")),
		}}, "n2 is muted: the receiver has not heard of the beginning"},
		"an end is sent whose beginning is not known any more": {observation{deliveries: []notice.Delivery{waiting("n2", 0, resolved("n1"))}}, "send n2"},
		"an end waits for its beginning in a digest": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, summed), waiting("d1", 3*time.Hour, digest("n1"), failed(3, time.Second)), waiting("n2", 0, resolved("n1")),
		}}, "wait 1s"},
		"a beginning that failed is sent before a digest with its end": {observation{deliveries: []notice.Delivery{
			waiting("n1", 4*time.Hour, failed(3, time.Second)), waiting("n2", 4*time.Hour-1, resolved("n1"), summed), waiting("d1", 3*time.Hour, digest("n2")),
		}}, "wait 1s"},
		"a notice of a muted task is muted":              {observation{mutes: []incident.Mute{mute}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "n1 is muted: muted"},
		"a mute that is over mutes nothing":              {observation{mutes: []incident.Mute{mute}, deliveries: []notice.Delivery{waiting("n1", 0)}, now: noon.Add(time.Hour)}, "send n1"},
		"a mute of another namespace mutes nothing":      {observation{mutes: []incident.Mute{{Namespace: "ops", Until: noon.Add(1)}}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "send n1"},
		"a mute by labels needs all of them":             {observation{mutes: []incident.Mute{labelled}, labels: map[string]map[string]string{"perf/sums": {"team": "b"}}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "send n1"},
		"a mute by labels is by those of the newest run": {observation{mutes: []incident.Mute{labelled}, labels: map[string]map[string]string{"perf/sums": {"team": "a", "x": "y"}}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "n1 is muted: muted"},

		"the end of a run is sent":                  {observation{rules: receiver.Rules{MinChange: 0.2, SkipResolved: true}, deliveries: []notice.Delivery{waiting("n1", 0, ended)}}, "send n1"},
		"the end of a run of a muted task is muted": {observation{mutes: []incident.Mute{mute}, deliveries: []notice.Delivery{waiting("n1", 0, ended)}}, "n1 is muted: muted"},
		"an end is muted by the labels of its run": {observation{
			mutes: []incident.Mute{labelled}, labels: map[string]map[string]string{"perf/sums": {"team": "b"}},
			deliveries: []notice.Delivery{waiting("n1", 0, ended, func(d *notice.Delivery) { d.Notice.Ends[0].Labels = map[string]string{"team": "a"} })},
		}, "n1 is muted: muted"},
		"an end is muted by no labels of another run": {observation{
			mutes: []incident.Mute{labelled}, labels: map[string]map[string]string{"perf/sums": {"team": "a"}},
			deliveries: []notice.Delivery{waiting("n1", 0, ended, func(d *notice.Delivery) { d.Notice.Ends[0].Labels = map[string]string{"team": "b"} })},
		}, "send n1"},
		"ends are left out where incidents alone are wanted": {observation{rules: receiver.Rules{SkipEnds: true}, deliveries: []notice.Delivery{waiting("n1", 0, ended), waiting("n2", 0)}}, "n1 is muted: this receiver gets no ends of runs"},
		"an end of a set waits for an earlier end of the set that is to be sent again": {observation{deliveries: []notice.Delivery{
			waiting("n1", time.Hour, ended, endOf("s"), failed(1, time.Minute)), waiting("n2", 0, ended, endOf("s")),
		}}, "wait 1m0s"},
		"an end of another set does not wait for it": {observation{deliveries: []notice.Delivery{
			waiting("n1", time.Hour, ended, endOf("s"), failed(1, time.Minute)), waiting("n2", 0, ended, endOf("t")),
		}}, "send n2"},
		"of the ends of a set, a digest has the last": {observation{rules: receiver.Rules{Rate: 1}, deliveries: []notice.Delivery{
			waiting("n1", time.Hour, ended, endOf("s")), waiting("n2", 0, ended, endOf("s")),
		}}, "digest of [n1 n2], 0 incidents, 1 ends, 0 more"},
		"ends that wait are in a digest": {observation{rules: receiver.Rules{Rate: 1}, deliveries: []notice.Delivery{waiting("n1", 0, ended), waiting("n2", 0, ended), waiting("n3", 0)}}, "digest of [n1 n2 n3], 1 incidents, 2 ends, 0 more"},

		"nothing is sent in quiet hours":                       {observation{rules: receiver.Rules{Quiet: quiet}, deliveries: []notice.Delivery{waiting("n1", 0)}}, "wait 1h0m0s"},
		"a test passes quiet hours, mutes, rate and namespace": {observation{rules: receiver.Rules{Quiet: quiet, Rate: 1, Namespaces: []string{"ops"}}, mutes: []incident.Mute{mute}, deliveries: []notice.Delivery{waiting("n0", time.Hour, sent(time.Minute)), waiting("t1", 0, isTest)}}, "send t1"},

		"below the rate notices are sent":                         {observation{rules: receiver.Rules{Rate: 3}, deliveries: all}, "send n2"},
		"at the rate notices wait for the hour to pass":           {observation{rules: receiver.Rules{Rate: 1}, deliveries: all}, "wait 30m0s"},
		"the last notice of an hour sums up all that wait":        {observation{rules: receiver.Rules{Rate: 2}, deliveries: all}, "digest of [n2 n3], 2 incidents, 0 more"},
		"one notice that waits needs no digest":                   {observation{rules: receiver.Rules{Rate: 2}, deliveries: all[:2]}, "send n2"},
		"the notices of a digest are summed up before it is sent": {observation{rules: receiver.Rules{Rate: 2}, deliveries: append(all[:3:3], summary)}, "n2 is summed: summed up in digest d1. n3 is summed: summed up in digest d1"},
		"a digest is sent before newer notices make another one":  {observation{rules: receiver.Rules{Rate: 2}, deliveries: []notice.Delivery{all[0], summary, waiting("n4", 2*time.Hour), waiting("n5", 0)}}, "send d1"},
		"a notice that may have arrived is in no digest":          {observation{rules: receiver.Rules{Rate: 2}, deliveries: []notice.Delivery{all[0], all[1], waiting("n3", 2*time.Hour, func(d *notice.Delivery) { d.Sending = noon })}}, "send n3"},

		"a firing notice is sent again":                   {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", time.Hour, sent(time.Minute))}}, "repeat n1"},
		"it is sent again only after the time for that":   {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", time.Hour, sent(time.Hour))}, repeated: map[string]time.Time{"perf/n1": noon.Add(-20 * time.Second)}}, "wait 40s"},
		"one whose end has a notice is not sent again":    {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", time.Hour, sent(time.Hour)), waiting("n2", time.Minute, resolved("n1"), sent(time.Minute))}}, "nothing"},
		"a new notice goes before one that is sent again": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", time.Hour, sent(time.Hour)), waiting("n2", 0)}}, "send n2"},
		"a notice that is sent again is not forgotten": {observation{
			rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", 0, sent(91*24*time.Hour))},
		}, "repeat n1"},
		"a notice that a later one has ended is forgotten": {observation{
			rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", 100*24*time.Hour, sent(91*24*time.Hour)), waiting("n2", 0, resolved("n1"), sent(24*time.Hour))},
		}, "forget n1"},
		"a notice that ended long ago is forgotten": {observation{deliveries: []notice.Delivery{waiting("n1", 0, sent(91*24*time.Hour)), waiting("n2", 0)}}, "forget n1"},
		"one that waits is never forgotten":         {observation{deliveries: []notice.Delivery{waiting("n1", 91*24*time.Hour)}}, "send n1"},
		"one that is sent again is not forgotten":   {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{waiting("n1", 0, sent(91*24*time.Hour))}}, "repeat n1"},
		"all incidents of a group that the receiver has heard of are sent again": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, sent(3*time.Hour)), waiting("n2", 2*time.Hour, joins, sent(2*time.Hour)), waiting("n3", time.Hour, joins, with(notice.Muted)),
		}}, "repeat n2, of n2, of n1"},
		"incidents of before the last end are not sent again": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, sent(3*time.Hour)), waiting("n2", 2*time.Hour, resolved("n1"), sent(2*time.Hour)), waiting("n3", time.Hour, joins, sent(time.Hour)),
		}}, "repeat n3"},
		"those of a digest are sent again once it is sent": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, summed), waiting("d1", 2*time.Hour, digest("n1"), sent(2*time.Hour)),
		}}, "repeat n1"},
		"those of a digest that waits are not": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, summed), waiting("d1", 2*time.Hour, digest("n1"), failed(1, time.Hour)),
		}}, "wait 1h0m0s"},
		"what is sent goes on being sent again while a later notice waits": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, sent(3*time.Hour)), waiting("n2", time.Hour, joins, failed(1, time.Hour)),
		}}, "repeat n1"},
		"one whose end was muted is not sent again": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 3*time.Hour, sent(3*time.Hour)), waiting("n2", time.Hour, resolved("n1"), with(notice.Muted)),
		}}, "nothing"},
		"one whose end was refused is forgotten": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 100*24*time.Hour, sent(100*24*time.Hour)), waiting("n2", 91*24*time.Hour, resolved("n1"), with(notice.Refused)),
		}}, "forget n1"},
		"an end that was muted stays as long as the notice that it ended": {observation{rules: receiver.Rules{Repeat: time.Minute}, deliveries: []notice.Delivery{
			waiting("n1", 100*24*time.Hour, sent(89*24*time.Hour)), waiting("n2", 91*24*time.Hour, resolved("n1"), with(notice.Muted)),
		}}, "nothing"},
		"nothing is sent again where nobody asks for that": {observation{deliveries: []notice.Delivery{waiting("n1", time.Hour, sent(time.Hour))}}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.o.now.IsZero() {
				tt.o.now = noon
			}
			if diff := cmp.Diff(tt.want, inWords(decide(tt.o))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestADigestHasTheNewestStateOfEachIncidentAndTheWorstTen(t *testing.T) {
	var of []notice.Delivery
	for n := range 12 {
		size := store.Float(float64(n) / 100)
		of = append(of, waiting(fmt.Sprintf("n%02d", n), time.Hour, func(d *notice.Delivery) { d.Notice.Incidents[0].Magnitude = &size }))
	}
	end := waiting("n99", 0, resolved("n11"))
	end.Notice.Incidents[0].ID, end.Notice.Incidents[0].Magnitude, end.Notice.More = "of n11", of[11].Notice.Incidents[0].Magnitude, 3
	d := digestOf(append(of, end), noon)
	if first := d.Notice.Incidents[0]; first.ID != "of n11" || first.State != incident.Resolved {
		t.Errorf("the worst is %s, %s: want that of n11, resolved", first.ID, first.State)
	}
	if len(d.Notice.Incidents) != 10 || d.Notice.More != 5 || d.Notice.Became != incident.Firing || len(d.Notice.Digest) != 13 {
		t.Errorf("%d incidents, %d more, became %s, of %d", len(d.Notice.Incidents), d.Notice.More, d.Notice.Became, len(d.Notice.Digest))
	}
	if again := digestOf(append(of, end), noon.Add(time.Hour)); again.Notice.ID != d.Notice.ID {
		t.Error("the same digest has another ID")
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		test bool
		want string
	}{
		"an answer ends a notice":                     {nil, false, "sent after 0s, again false: ok"},
		"a refusal ends a notice":                     {&receiver.RejectedError{Err: errors.New("no")}, false, "refused after 0s, again false: no"},
		"a fault is tried again":                      {errors.New("away"), false, "waiting after 20s, alone for 10s, again false: away"},
		"a receiver is asked again when it says":      {&receiver.TemporaryError{Err: errors.New("busy"), After: time.Second}, false, "waiting after 1s, alone for 1s as asked, again false: busy"},
		"a receiver says to a test when":              {&receiver.TemporaryError{Err: errors.New("busy"), After: time.Second}, true, "refused after 0s, alone for 1s as asked, again false: busy"},
		"a receiver that says nothing is away":        {&receiver.TemporaryError{Err: errors.New("busy")}, false, "waiting after 20s, alone for 10s, again false: busy"},
		"a notice without an answer may have arrived": {fmt.Errorf("%w: cut", receiver.ErrUnanswered), false, "waiting after 20s, alone for 10s, again true: the notice may have arrived: cut"},
		"a test is tried once":                        {errors.New("away"), true, "refused after 0s, again false: away"},
		"answers are one line":                        {errors.New("a\nb\x00c"), false, "waiting after 20s, alone for 10s, again false: a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			d := begun(waiting("n1", 0), noon.Add(-time.Second))
			d.Attempts, d.Notice.Test = 3, tt.test
			d.Until, d.Asked = noon.Add(-time.Hour), true
			d = answered(d, "", tt.err, 2, noon)
			wait, left := time.Duration(0), ""
			if !d.Next.IsZero() {
				wait = d.Next.Sub(noon)
			}
			if !d.Until.IsZero() {
				left = ", alone for " + d.Until.Sub(noon).String()
			}
			if d.Asked {
				left += " as asked"
			}
			if got := fmt.Sprintf("%s after %s%s, again %t: %s", d.Status, wait, left, d.Notice.Again, d.Answer); got != tt.want || !d.Sending.IsZero() {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestASendWithoutAnAnswerIsMarkedWhenItBeginsAgain(t *testing.T) {
	d := begun(waiting("n1", 0), noon)
	if d.Notice.Again || d.Attempts != 1 || !d.Sending.Equal(noon) {
		t.Errorf("the first: %+v", d)
	}
	if d = begun(d, noon.Add(time.Hour)); !d.Notice.Again || d.Attempts != 2 {
		t.Errorf("the second: %+v", d)
	}
}

func TestPausesDoubleUpToFiveMinutes(t *testing.T) {
	var got []time.Duration
	for _, n := range []int{1, 2, 3, 7, 8, 1 << 40} {
		got = append(got, pause(n, 0))
	}
	if diff := cmp.Diff([]time.Duration{5e9, 10e9, 20e9, 300e9, 300e9, 300e9}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
