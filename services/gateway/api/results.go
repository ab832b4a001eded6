package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// resultServer implements bai.v1.ResultService.
type resultServer struct {
	baiv1.UnimplementedResultServiceServer

	runs *Server
}

// GetSummaries implements bai.v1.ResultService.
func (r *resultServer) GetSummaries(ctx context.Context, req *baiv1.GetSummariesRequest) (*baiv1.GetSummariesResponse, error) {
	run, err := r.runs.find(ctx, req)
	if err != nil {
		return nil, err
	}
	all, _, err := store.Get[store.Summaries](ctx, r.runs.store, store.KindSummary, run.ID)
	if err == nil {
		return summariesOf(all), nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	streams, err := r.runs.store.Streams(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	c := store.Complete(run, streams)
	none := c.Complete && c.Samples == 0 // a complete run without samples gets no summaries
	return &baiv1.GetSummariesResponse{Pending: !none, Complete: none, RunId: run.ID, Attempt: message.Int32(run.Attempt)}, nil
}

func summariesOf(all store.Summaries) *baiv1.GetSummariesResponse {
	out := &baiv1.GetSummariesResponse{
		Complete: all.Complete, RunId: all.Run, Attempt: message.Int32(all.Attempt), Samples: all.Samples,
		Method: all.Method, Notes: all.Notes,
	}
	for _, u := range all.Unknown {
		out.Unknown = append(out.Unknown, &baiv1.UnknownMetric{Metric: u.Metric, Reason: u.Reason})
	}
	for i := range all.Summaries {
		s := &all.Summaries[i]
		m := &baiv1.MetricSummary{
			Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, N: s.N, NotNumbers: s.NotNumbers,
			Min: float64(s.Min), Max: float64(s.Max), Median: float64(s.Median), P90: float64(s.P90),
			P95: float64(s.P95), P99: float64(s.P99),
			Mean: float64(s.Mean), Sd: float64(s.SD), First: float64(s.First), Last: float64(s.Last), Direction: s.Direction,
		}
		if s.Interval != nil {
			m.Interval = &baiv1.Interval{Low: float64(s.Interval.Low), High: float64(s.Interval.High), Level: s.Interval.Level}
		}
		out.Summaries = append(out.Summaries, m)
	}
	return out
}

// GetEnvironment implements bai.v1.ResultService.
func (r *resultServer) GetEnvironment(ctx context.Context, req *baiv1.GetEnvironmentRequest) (*baiv1.GetEnvironmentResponse, error) {
	run, err := r.runs.find(ctx, req)
	if err != nil {
		return nil, err
	}
	environment, _, err := store.Get[store.RunEnvironment](ctx, r.runs.store, store.KindEnvironment, run.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return &baiv1.GetEnvironmentResponse{RunId: run.ID, Environment: environmentOf(run, environment)}, nil
}

func environmentOf(run store.Run, environment store.RunEnvironment) *baiv1.Environment {
	sum := sha256.Sum256([]byte(run.Descriptor))
	out := &baiv1.Environment{DescriptorSha256: hex.EncodeToString(sum[:])}
	if d, _ := (parser.Parser{Accepted: true}).Parse(run.File, []byte(run.Descriptor)); d != nil {
		out.Image = d.Env.DockerImage
	}
	for _, d := range run.Data {
		out.Data = append(out.Data, &baiv1.DataSet{Source: d.Source, Path: d.Path, Sha256: d.SHA256, Size: d.Size})
	}
	pods := environment.Attempt(run.Attempt)
	for i := range pods {
		pods[i].Image = run.Images[pods[i].Origin.Pod]
	}
	out.Fingerprint = store.Fingerprint(out.GetImage(), pods)
	for _, p := range pods {
		out.Pods = append(out.Pods, &baiv1.PodEnvironment{
			Role: p.Origin.Role, Index: message.Int32(p.Origin.Index), Pod: p.Origin.Pod, Attempt: message.Int32(p.Origin.Attempt),
			PlatformVersion: p.Platform, Machine: machineOf(p.Machine), Tools: p.Tools, Unknown: p.Unknown,
			ImageDigest: p.Image,
		})
	}
	return out
}

func machineOf(m event.Machine) *baiv1.Machine {
	out := &baiv1.Machine{
		Node: m.Node, Kernel: m.Kernel, Architecture: m.Architecture, Os: m.OS, CpuModel: m.CPUModel,
		Cpus: message.Int32(m.CPUs), CpusAllowed: message.Int32(m.CPUsAllowed), Cores: message.Int32(m.Cores),
		Sockets: message.Int32(m.Sockets),
		MaxMhz:  m.MaxMHz, Governor: m.Governor, Turbo: m.Turbo, Memory: m.Memory, NumaNodes: message.Int32(m.NUMANodes),
		CpuLimit: m.CPULimit, MemoryLimit: m.MemoryLimit, GpuDriver: m.GPUDriver, Cuda: m.CUDA, Hypervisor: m.Hypervisor,
	}
	for _, g := range m.GPUs {
		out.Gpus = append(out.Gpus, &baiv1.Gpu{Model: g.Model, Memory: g.Memory, Uuid: g.UUID})
	}
	return out
}
