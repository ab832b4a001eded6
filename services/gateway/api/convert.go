package api

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// The enums of the API have the words of events, in upper case and with a prefix. A
// word that the API lacks becomes the unspecified value.

func phaseOf(p event.Phase) baiv1.Phase {
	return baiv1.Phase(baiv1.Phase_value["PHASE_"+strings.ToUpper(string(p))])
}

func outcomeOf(o event.Outcome) baiv1.Outcome {
	return baiv1.Outcome(baiv1.Outcome_value["OUTCOME_"+strings.ToUpper(string(o))])
}

func classOf(c event.Class) baiv1.FailureClass {
	return baiv1.FailureClass(baiv1.FailureClass_value["FAILURE_CLASS_"+strings.ToUpper(string(c))])
}

func phaseFrom(p baiv1.Phase) event.Phase {
	return event.Phase(strings.ToLower(strings.TrimPrefix(p.String(), "PHASE_")))
}

func outcomeFrom(o baiv1.Outcome) event.Outcome {
	return event.Outcome(strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_")))
}

func timeOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeAt(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timeOf(*t)
}

func int32Of(n int) int32 { return int32(min(max(n, 0), 1<<31-1)) } //nolint:gosec // it is in range

func runOf(r store.Run) *baiv1.Run {
	out := &baiv1.Run{
		Id: r.ID, Name: r.Name, Namespace: r.Namespace, Owner: r.Owner, Labels: r.Labels, Lineage: lineageOf(r.Lineage),
		DescriptorFile: r.File, DescriptorToml: r.Descriptor,
		Phase: phaseOf(r.Phase), Outcome: outcomeOf(r.Outcome), FailureClass: classOf(r.Class), Reason: string(r.Reason), Message: r.Message,
		Progress: progressOf(r.Progress), Attempt: int32Of(r.Attempt),
		CreateTime: timeOf(r.Created), UpdateTime: timeOf(r.Updated), StartTime: timeAt(r.Started), EndTime: timeAt(r.Ended),
		Revision: r.Revision, Overrides: overridesOf(r.Overrides), Origination: provenanceOf(r.Origination),
		Description: r.Description, Framework: r.Framework, FrameworkVersion: r.FrameworkVersion, DataIds: r.DataIDs,
	}
	if r.ExitCode != nil {
		code := int32(*r.ExitCode) //nolint:gosec // exit codes are small
		out.ExitCode = &code
	}
	if code := pod.CodeOf(r.Data); code != nil {
		out.Script = scriptOf(*code)
	}
	for _, d := range r.Data {
		out.Data = append(out.Data, &baiv1.DataSet{Source: d.Source, Path: d.Path, Sha256: d.SHA256, Size: d.Size})
	}
	return out
}

func scriptOf(s event.Bundle) *baiv1.Script { return &baiv1.Script{Sha256: s.SHA256, Size: s.Size} }

func overridesOf(all []event.Override) []*baiv1.Override {
	out := make([]*baiv1.Override, len(all))
	for i, o := range all {
		out[i] = &baiv1.Override{Path: o.Path, Value: o.Value}
	}
	return out
}

func overridesFrom(all []*baiv1.Override) []event.Override {
	out := make([]event.Override, len(all))
	for i, o := range all {
		out[i] = event.Override{Path: o.GetPath(), Value: o.GetValue()}
	}
	return out
}

func provenanceOf(o *event.Provenance) *baiv1.Origination {
	if o == nil {
		return nil
	}
	return &baiv1.Origination{Uri: o.URI, Sha256: o.SHA256}
}

func provenanceFrom(o *baiv1.Origination) *event.Provenance {
	if o == nil {
		return nil
	}
	return &event.Provenance{URI: o.GetUri(), SHA256: o.GetSha256()}
}

func lineageOf(l event.Lineage) *baiv1.Lineage {
	if l == (event.Lineage{}) {
		return nil
	}
	return &baiv1.Lineage{
		SetId: l.Set, Cell: l.Cell, Repetition: int32Of(l.Repetition), Warmup: l.Warmup,
		ScheduleId: l.Schedule, FiringTime: timeAt(l.Firing), RerunOf: l.RerunOf, Confirms: l.Confirms, Compares: l.Compares,
	}
}

func progressOf(p *event.Progress) *baiv1.Progress {
	if p == nil {
		return nil
	}
	return &baiv1.Progress{Done: p.Done, Total: p.Total, Unit: p.Unit}
}

func changeOf(c store.Change) *baiv1.Change {
	return &baiv1.Change{
		Revision: c.Revision, Time: timeOf(c.Time), Attempt: int32Of(c.Attempt), Phase: phaseOf(c.Phase), Outcome: outcomeOf(c.Outcome),
		FailureClass: classOf(c.Class), Reason: string(c.Reason), Message: c.Message, Progress: progressOf(c.Progress), Kind: c.Topic,
	}
}

func originOf(o store.Origin) *baiv1.Origin {
	return &baiv1.Origin{
		Attempt: int32Of(o.Attempt), Role: o.Role, Index: int32Of(o.Index), Pod: o.Pod, Container: o.Container, Stream: o.Kind,
	}
}

func lineOf(l store.Line) *baiv1.LogLine {
	return &baiv1.LogLine{
		Origin: originOf(l.Origin), Sequence: l.Seq, Stderr: l.Stderr, Time: timestamppb.New(time.Unix(0, l.Time)),
		Text: strings.ToValidUTF8(l.Text, "\uFFFD"), Cut: l.Truncated,
	}
}

func sampleOf(s store.Sample) *baiv1.Sample {
	return &baiv1.Sample{
		Origin: originOf(s.Origin), Sequence: s.Seq, Sub: int32Of(s.Sub), Metric: s.Name, Value: s.Float(), Unit: s.Unit,
		Time: timestamppb.New(time.Unix(0, s.Time)), Step: s.Step, Labels: s.Labels, Direction: s.Direction,
	}
}

func faultsOf(faults parser.Faults) []*baiv1.Fault {
	out := make([]*baiv1.Fault, len(faults))
	for i, f := range faults {
		out[i] = &baiv1.Fault{
			File: f.File, Line: int32Of(f.Line), Column: int32Of(f.Column), Path: f.Path,
			Code: f.Code, Message: f.Message, Remedy: f.Remedy, Warning: f.Warning,
		}
	}
	return out
}

// filterOf returns the store's filter for a request. A missing time sets no bound.
func filterOf(req *baiv1.ListRunsRequest) store.RunFilter {
	f := store.RunFilter{
		Owner: req.GetOwner(), Namespace: req.GetNamespace(), Labels: req.GetLabels(), Text: req.GetText(), Schedule: strings.ToLower(req.GetScheduleId()),
		Set: strings.ToLower(req.GetSetId()), Cell: req.GetCell(),
		Oldest:    req.GetOrder() == baiv1.Order_ORDER_OLDEST_FIRST,
		Framework: req.GetFramework(), FrameworkVersion: req.GetFrameworkVersion(), DataID: req.GetDataId(),
	}
	for _, p := range req.GetPhases() {
		f.Phases = append(f.Phases, phaseFrom(p))
	}
	for _, o := range req.GetOutcomes() {
		f.Outcomes = append(f.Outcomes, outcomeFrom(o))
	}
	f.Since, f.Until = timeFrom(req.GetSince()), timeFrom(req.GetUntil())
	return f
}

// timeFrom returns t as a time.Time, or the zero time if t is nil.
func timeFrom(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
