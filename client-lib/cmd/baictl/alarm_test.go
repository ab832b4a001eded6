package main_test

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// addAlarms adds an incident of each kind, mutes, and a notice with each status.
func addAlarms(p *baitest.Platform) {
	for _, i := range []*baiv1.Incident{failedIncident(), limitIncident(), latencyIncident(), missingIncident(), rateIncident()} {
		i.Namespace = "default"
		i.OpenTime = i.GetTransitions()[0].GetTime()
		i.UpdateTime = i.GetTransitions()[len(i.GetTransitions())-1].GetTime()
		p.AddIncident(i)
	}
	p.AddMute(&baiv1.Mute{Id: "6mutes00000000000000000001", Namespace: "default", User: "bob", Reason: "the lab moved", CreateTime: daysAgo(30), Until: daysAgo(20)})
	p.AddMute(&baiv1.Mute{
		Id: "6mutes00000000000000000002", Namespace: "default", Task: "checksums", Labels: map[string]string{"cluster": "west"}, User: "ann",
		Reason: "new switches in \x1b[31mwest, which are tested until the end of the month by those who run the cluster", CreateTime: daysAgo(1), Until: daysAgo(-30),
	})
	addNotices(p)
	p.AddReceiver("perf-team", "ok \x1b[31mred")
	p.AddReceiver("gone", "")
}

// daysAgo is a time before the platform's.
func daysAgo(n int) *timestamppb.Timestamp { return timestamppb.New(newYear.AddDate(0, 0, -n)) }

func rateIncident() *baiv1.Incident {
	i := &baiv1.Incident{
		Id: "7rate2c3d4e5f6g7h8j9kamnbp", Task: "checksums", Metric: "rate", Unit: "MB/s", State: "firing", GroupId: "g1",
		Message: "rate of checksums fell by 6.6 % with version v1.1",
		Rule:    &baiv1.AlarmRule{Id: "9f86d081884c7d659a2feaa0c55ad015", When: "regression", Statistic: "median", MinChange: 0.02, ForPoints: 1, Notify: []string{"perf-team"}},
		Kind:    "step", Direction: "down", Before: 101.5, After: 94.75, Magnitude: new(-0.0665), Interval: &baiv1.Interval{Low: -0.083, High: -0.049, Level: 0.95}, P: new(3.1e-7),
		Cause: "regression", Reasons: []string{"the version differs: v1.0 before, v1.1 since then", "the machines are the same"},
		Transitions: []*baiv1.IncidentTransition{
			{State: "suspected", Time: daysAgo(5), Reason: "4 points after the change"}, {State: "firing", Time: daysAgo(4), Reason: "the change is still there"},
		},
	}
	for n, v := range []float64{101.25, 102, 101.5, 100.125, 101.75, 101.5, 94.75, 95, 94.5, 94.75} {
		version := "v1.0"
		if n > 5 {
			version = "v1.1"
		}
		i.Recent = append(i.Recent, &baiv1.IncidentPoint{RunId: "01kdyt1q88000000000000001" + string(rune('0'+n)), Time: daysAgo(12 - n), Version: version, Value: v})
	}
	i.Rule.ConfirmPairs = 5
	i.Confirmation = &baiv1.IncidentConfirmation{
		OldRunId: "01kdyt1q880000000000000015", NewRunId: "01kdyt1q880000000000000017", Verdict: "confirmed", Message: "in 2 pairs of runs the new edition is lower by 6.65 %",
		Runs: []*baiv1.ConfirmationRun{
			{RunId: "01kdyt1q880000000000000021", Pair: 1, Side: "old", State: "succeeded", Value: new(101.5)},
			{RunId: "01kdyt1q880000000000000022", Pair: 1, Side: "new", State: "succeeded", Value: new(94.75)},
			{RunId: "01kdyt1q880000000000000023", Pair: 2, Side: "new", State: "failed"},
			{RunId: "01kdyt1q880000000000000024", Pair: 3, Side: "new", State: "succeeded", Value: new(95.0)},
			{RunId: "01kdyt1q880000000000000025", Pair: 3, Side: "old", State: "running"},
		},
	}
	i.LastGood, i.FirstBad, i.RangeFirst, i.RangeLast = i.GetRecent()[5], i.GetRecent()[6], i.GetRecent()[5], i.GetRecent()[7]
	return i
}

func latencyIncident() *baiv1.Incident {
	return &baiv1.Incident{
		Id: "7latency4e5f6g7h8j9kamnbpq", Task: "a-task-with-a-long-name", Metric: "latency", Unit: "ms", Labels: map[string]string{"op": "read \x1b[31m", "size": "4096"}, State: "suspected",
		Message: "latency {op=read \x1b[31m} rises slowly", Rule: &baiv1.AlarmRule{When: "change", Statistic: "p99", ForPoints: 1}, Kind: "drift", Direction: "up", After: 4.5, P: new(0.004),
		FirstBad: &baiv1.IncidentPoint{RunId: failedID, Time: daysAgo(3), Value: 4.5}, Cause: "insufficient", Transitions: []*baiv1.IncidentTransition{{State: "suspected", Time: daysAgo(3)}},
	}
}

func limitIncident() *baiv1.Incident {
	ack := &baiv1.IncidentAck{User: "ann", Time: daysAgo(7), Reason: "the disk is \x1b[1mfull", Until: daysAgo(-7)}
	return &baiv1.Incident{
		Id: "7limit3d4e5f6g7h8j9kamnbpq", Task: "sizes", Metric: "run.duration", Unit: "s", Cell: "size=1G", State: "acknowledged", Message: "run.duration is 725.5 s, above 600 s",
		Rule: &baiv1.AlarmRule{When: "above", Statistic: "median", Limit: 10, Unit: "min", ForPoints: 2}, Direction: "up", Before: 600, After: 725.5,
		FirstBad: &baiv1.IncidentPoint{RunId: runningID, Time: daysAgo(9), Value: 725.5}, Ack: ack,
		Transitions: []*baiv1.IncidentTransition{{State: "firing", Time: daysAgo(9)}, {State: "acknowledged", Time: daysAgo(7), User: "ann", Reason: ack.GetReason()}},
	}
}

func missingIncident() *baiv1.Incident {
	return &baiv1.Incident{
		Id: "7missing4e5f6g7h8j9kamnbpq", Task: "hello", Metric: "loss", State: "firing", Silent: true, Message: "loss of hello has no value since 2025-12-20",
		Rule: &baiv1.AlarmRule{When: "missing", Statistic: "median", ForPoints: 1}, LastGood: &baiv1.IncidentPoint{RunId: helloID, Time: daysAgo(13), Value: 0.25},
		Transitions: []*baiv1.IncidentTransition{{State: "firing", Time: daysAgo(2)}},
	}
}

func failedIncident() *baiv1.Incident {
	return &baiv1.Incident{
		Id: "7failed4e5f6g7h8j9kamnbpqr", Task: "hello", State: "resolved", Message: "runs of hello fail", Rule: &baiv1.AlarmRule{When: "failed", ForPoints: 1},
		FirstBad: &baiv1.IncidentPoint{RunId: failedID, Time: daysAgo(12)}, Cause: "method",
		Transitions: []*baiv1.IncidentTransition{{State: "firing", Time: daysAgo(12)}, {State: "resolved", Time: daysAgo(10), Reason: "run hello succeeded"}},
	}
}

func addNotices(p *baitest.Platform) {
	rate, limit := rateIncident().GetId(), limitIncident().GetId()
	later := timestamppb.New(newYear.Add(time.Hour))
	for n, one := range []*baiv1.Notice{
		{Receiver: "mail", Became: "firing", IncidentIds: []string{limit}, Status: "sent", Attempts: 1, Answer: "250 2.0.0 Ok: queued as 4F2A", Message: "run.duration is 725.5 s"},
		{Receiver: "chat", Became: "firing", IncidentIds: []string{limit}, Status: "refused", Attempts: 1, Answer: "404 no_service \x1b[31m"},
		{Receiver: "perf-team", Became: "firing", IncidentIds: []string{rate, limit}, More: 12, Status: "waiting", Attempts: 3, Answer: "503 the server is away, and it answers with a page that is much too long for a table of a terminal", RetryTime: later, Message: "rate of checksums fell"},
		{Receiver: "mail", Became: "firing", IncidentIds: []string{rate}, Status: "muted"},
		{Receiver: "chat", Became: "resolved", IncidentIds: []string{rate}, Status: "summed", Answer: "in digest 0123456789"},
		{Receiver: "mail", Status: "sent", Test: true, Attempts: 1, Answer: "250 2.0.0 Ok"},
	} {
		one.Id, one.Namespace = "0123456789abcdef0123456789abcde"+string(rune('0'+n)), "default"
		one.CreateTime, one.StatusTime = daysAgo(8-n), daysAgo(8-n)
		p.AddNotice(one)
	}
}
