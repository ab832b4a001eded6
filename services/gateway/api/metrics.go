package api

import (
	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// QueryMetrics implements bai.v1.RunService.
func (s *Server) QueryMetrics(req *baiv1.QueryMetricsRequest, stream grpc.ServerStreamingServer[baiv1.QueryMetricsResponse]) error {
	run, err := s.find(stream.Context(), req)
	if err != nil {
		return err
	}
	query := store.SampleQuery{Run: run.ID, Names: req.GetMetrics()}
	read := func(cursor string, limit int) ([]store.Sample, string, error) {
		return s.store.Samples(stream.Context(), query, cursor, limit)
	}
	at, sent := place{req.GetCursor(), streamPage}, false
	for more := true; more; {
		var resp *baiv1.QueryMetricsResponse
		if resp, more, err = page(&at, read, samplesOf); err != nil {
			return err
		}
		if len(resp.GetSamples()) == 0 && sent { // but the first says where to go on in any case
			continue
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
		sent = true
	}
	return nil
}

func samplesOf(page []store.Sample, cursor string) *baiv1.QueryMetricsResponse {
	resp := &baiv1.QueryMetricsResponse{Cursor: cursor}
	for _, sample := range page {
		resp.Samples = append(resp.Samples, sampleOf(sample))
	}
	return resp
}
