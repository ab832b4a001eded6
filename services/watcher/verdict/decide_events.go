package verdict

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// EventsFor returns the event for v: a status, the end of the run, or that another attempt follows; none if v is unknown. The same verdict
// on the same state gives an event with the same ID.
func EventsFor(l event.Launched, v Verdict, s Observation) []event.Event {
	switch {
	case v.Phase == "":
		return nil
	case v.Phase != event.PhaseFinished:
		h := l.Cause("status/"+string(v.Phase), string(v.Reason)+" "+v.Message+" "+formatTime(v.Since))
		return []event.Event{event.Status{Header: at(h, v.Since), Phase: v.Phase, Reason: v.Reason, Message: v.Message}}
	case v.Class == event.ClassInfra && l.Retries > 0:
		h := at(l.Cause("retried", ""), v.Since)
		h.Attempt++
		return []event.Event{event.Retried{
			Header: h, Class: v.Class, Reason: v.Reason, Message: v.Message, Collectors: collectors(s),
			Machines: machines(s, v.Since),
		}}
	}
	f := event.Finished{
		Header: at(l.Cause("finished", ""), v.Since), Outcome: v.Outcome, Class: v.Class, Reason: v.Reason, Message: v.Message,
		Collectors: collectors(s), Images: imageDigests(s), Machines: machines(s, v.Since),
	}
	f.Started, f.Ended, f.ExitCode = processTimes(s)
	return []event.Event{f}
}

// at sets the time of an event to the time at which the cluster shows the beginning of the state.
func at(h event.Header, since time.Time) event.Header {
	if !since.IsZero() {
		h.Time = since.UTC()
	}
	return h
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// pods returns the attempt's pods, or the last known ones if it has none.
func pods(s Observation) []corev1.Pod {
	if len(s.Seen.Pods) > 0 {
		return s.Seen.Pods
	}
	return s.LastSeen.Pods
}

// collectors returns the UIDs of the pods whose collector has started and so whose data are expected, and the followers of the pods whose
// log is read.
func collectors(s Observation) []string {
	var uids []string
	for _, p := range pods(s) {
		c, ok := objects.Container(p, cluster.ContainerCollect)
		if ok && (objects.HasStarted(c) || c.Started != nil && *c.Started) {
			uids = append(uids, string(p.UID))
		}
	}
	for _, uid := range Unwrapped(s) {
		uids = append(uids, event.LogFollower(uid))
	}
	slices.Sort(uids)
	return uids
}

// imageDigests returns the digest of the benchmark's image in each pod in which the benchmark has started.
func imageDigests(s Observation) map[string]string {
	var all map[string]string
	for _, p := range pods(s) {
		c, ok := objects.Container(p, cluster.ContainerBenchmark)
		if !ok || !objects.HasStarted(c) {
			continue
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[string(p.UID)] = digest(c.ImageID)
	}
	return all
}

// digest returns the digest in the image ID of a container status, such as "docker.io/library/debian@sha256:…" or the digest alone.
func digest(id string) string {
	if id == "" {
		return event.NoImage
	}
	return id[strings.LastIndexByte(id, '@')+1:]
}

// Unwrapped returns the UIDs of the pods whose benchmark has started without the platform's entrypoint, so that a follower reads their log.
func Unwrapped(s Observation) []string {
	var uids []string
	for _, p := range pods(s) {
		if _, ok := objects.BenchmarkStarted(p); ok && cluster.RunsWithoutEntrypoint(p) {
			uids = append(uids, string(p.UID))
		}
	}
	return uids
}

// processTimes returns when the process whose end ends the run started and ended, and its exit code, as far as they are known. Of several
// processes it returns the first start and the last end.
func processTimes(s Observation) (began, ended *time.Time, code *int) {
	for _, p := range pods(mainPodsOnly(s)) {
		if t, ok := objects.BenchmarkStarted(p); ok && (began == nil || t.Time.Before(*began)) {
			began = new(t.UTC())
		}
		c, _ := objects.Container(p, cluster.ContainerBenchmark)
		t := c.State.Terminated
		if t == nil || t.StartedAt.IsZero() {
			continue
		}
		if ended == nil || t.FinishedAt.After(*ended) {
			ended = new(t.FinishedAt.UTC())
		}
		if code == nil || *code == 0 {
			code = new(int(t.ExitCode))
		}
	}
	return began, ended, code
}
