package api

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func phaseFrom(p baiv1.Phase) event.Phase {
	return event.Phase(strings.ToLower(strings.TrimPrefix(p.String(), "PHASE_")))
}

func outcomeFrom(o baiv1.Outcome) event.Outcome {
	return event.Outcome(strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_")))
}

func runOf(r store.Run) *baiv1.Run {
	out := &baiv1.Run{
		Id: r.ID, Name: r.Name, Namespace: r.Namespace, Owner: r.Owner, Labels: r.Labels, Lineage: lineageOf(r.Lineage),
		DescriptorFile: r.File, DescriptorToml: r.Descriptor,
		Phase: message.Phase(r.Phase), Outcome: message.Outcome(r.Outcome), FailureClass: message.Class(r.Class),
		Reason: string(r.Reason), Message: r.Message,
		Progress: progressOf(r.Progress), Attempt: message.Int32(r.Attempt),
		CreateTime: message.Time(r.Created), UpdateTime: message.Time(r.Updated), StartTime: message.TimeAt(r.Started),
		EndTime:  message.TimeAt(r.Ended),
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
		SetId: l.Set, Cell: l.Cell, Repetition: message.Int32(l.Repetition), Warmup: l.Warmup,
		ScheduleId: l.Schedule, FiringTime: message.TimeAt(l.Firing), RerunOf: l.RerunOf, Confirms: l.Confirms, Compares: l.Compares,
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
		Revision: c.Revision, Time: message.Time(c.Time), Attempt: message.Int32(c.Attempt), Phase: message.Phase(c.Phase),
		Outcome:      message.Outcome(c.Outcome),
		FailureClass: message.Class(c.Class), Reason: string(c.Reason), Message: c.Message, Progress: progressOf(c.Progress), Kind: c.Topic,
	}
}

func originOf(o store.Origin) *baiv1.Origin {
	return &baiv1.Origin{
		Attempt: message.Int32(o.Attempt), Role: o.Role, Index: message.Int32(o.Index), Pod: o.Pod, Container: o.Container, Stream: o.Kind,
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
		Origin: originOf(s.Origin), Sequence: s.Seq, Sub: message.Int32(s.Sub), Metric: s.Name, Value: s.Float(), Unit: s.Unit,
		Time: timestamppb.New(time.Unix(0, s.Time)), Step: s.Step, Labels: s.Labels, Direction: s.Direction,
	}
}

func faultsOf(faults parser.Faults) []*baiv1.Fault {
	out := make([]*baiv1.Fault, len(faults))
	for i, f := range faults {
		out[i] = &baiv1.Fault{
			File: f.File, Line: message.Int32(f.Line), Column: message.Int32(f.Column), Path: f.Path,
			Code: f.Code, Message: f.Message, Remedy: f.Remedy, Warning: f.Warning,
		}
	}
	return out
}

// filterOf returns the store's filter for a request. A missing time sets no bound.
func filterOf(req *baiv1.ListRunsRequest) store.RunFilter {
	f := store.RunFilter{
		Owner: req.GetOwner(), Namespace: req.GetNamespace(), Labels: req.GetLabels(), Text: req.GetText(),
		Schedule: strings.ToLower(req.GetScheduleId()),
		Set:      strings.ToLower(req.GetSetId()), Cell: req.GetCell(),
		Oldest:    req.GetOrder() == baiv1.Order_ORDER_OLDEST_FIRST,
		Framework: req.GetFramework(), FrameworkVersion: req.GetFrameworkVersion(), DataID: req.GetDataId(),
	}
	for _, p := range req.GetPhases() {
		f.Phases = append(f.Phases, phaseFrom(p))
	}
	for _, o := range req.GetOutcomes() {
		f.Outcomes = append(f.Outcomes, outcomeFrom(o))
	}
	f.Since, f.Until = request.Time(req.GetSince()), request.Time(req.GetUntil())
	return f
}
