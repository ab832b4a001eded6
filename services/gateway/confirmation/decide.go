package confirmation

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/gateway/pin"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// labelConfirms is the label of the runs with the incident that they confirm. It is for people: what is no part of a history is said by
// event.Lineage.
const labelConfirms = "confirms"

// repetition returns the request that repeats a run as it was, as one of a confirmation, and what of it may be different. Its descriptor is
// that of the run, with the digests of the image and of the data that the run had.
func repetition(run store.Run, r confirm.Request, ordinal int, nodes *event.NodePreference) (submit.Request, []string) {
	req := submit.Request{
		Key:        keyOf(r, ordinal),
		Descriptor: []byte(run.Descriptor), File: run.File, Owner: run.Owner, Namespace: run.Namespace,
		Labels: labelsOf(run, r.First), RerunOf: run.ID,
		Confirms: &submit.ConfirmingRun{Confirmation: r.ID, Incident: r.First, Nodes: nodes},
	}
	if code := pod.CodeOf(run.Data); code != nil {
		req.Script = code.SHA256
	}
	var gaps []string
	req.Overrides, gaps = pin.Overrides(run)
	return req, gaps
}

// keyOf returns the key of a run in its confirmation.
func keyOf(r confirm.Request, ordinal int) string {
	return fmt.Sprintf("%s %d", confirm.SideOf(r.ID, ordinal), ordinal)
}

// labelsOf returns the labels of a run, but for those that the platform sets itself, and that of an incident.
func labelsOf(run store.Run, incident string) map[string]string {
	labels := maps.Clone(run.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return descriptors.ReservedLabel(key) })
	labels[labelConfirms] = incident
	return labels
}

// maxNodes is how many nodes a run prefers or avoids at most.
const maxNodes = 32

// preferenceOf returns where a run is to be; nil for anywhere.
func preferenceOf(on, notOn []string) *event.NodePreference {
	if len(on)+len(notOn) == 0 {
		return nil
	}
	return &event.NodePreference{On: on[:min(len(on), maxNodes)], NotOn: notOn[:min(len(notOn), maxNodes)]}
}

// nodesOf returns the nodes on which the last attempt of a run was, in order, each once.
func nodesOf(r store.Run) (nodes []string) {
	for _, use := range r.Machines[r.Attempt] {
		nodes = append(nodes, use.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// costsOf returns what runs cost by their points.
func costsOf(all []store.RunPoints) confirm.Costs {
	costs := confirm.Costs{}
	for _, p := range all {
		for _, s := range p.Points {
			if s.Metric == descriptors.CostAmount && len(s.Labels) == 0 {
				costs[p.Run] = confirm.Money{Amount: float64(s.Median), Currency: s.Unit}
			}
		}
	}
	return costs
}

// withGaps returns gaps with one more, unless it is there or empty.
func withGaps(gaps []string, gap string) []string {
	if gap == "" || slices.Contains(gaps, gap) {
		return gaps
	}
	return append(slices.Clip(gaps), gap)
}

// refusal returns why a run cannot be repeated, or "" if the submission may succeed later.
func refusal(err error) string {
	var (
		invalid     *submit.InvalidError
		unsupported *submit.UnsupportedError
		set         *submit.SetError
		schedule    *submit.ScheduleError
	)
	if errors.As(err, &invalid) || errors.As(err, &unsupported) || errors.As(err, &set) || errors.As(err, &schedule) {
		return err.Error()
	}
	return ""
}
