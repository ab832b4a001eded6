package baitest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// AddData stores data.
func (p *Platform) AddData(d *baiv1.StoredData) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data = append(p.data, d)
	slices.SortFunc(p.data, func(a, b *baiv1.StoredData) int { return cmp.Compare(a.GetSha256(), b.GetSha256()) })
}

// Damage corrupts stored data.
func (p *Platform) Damage(sha256 string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged[sha256] = true
}

// dataService is the platform's service for data.
type dataService struct {
	baiv1.UnimplementedDataServiceServer

	p *Platform
}

func (s dataService) at(sha256 string) int {
	return slices.IndexFunc(s.p.data, func(d *baiv1.StoredData) bool { return d.GetSha256() == sha256 })
}

// ListData returns pages of two at most, so that there are several.
func (s dataService) ListData(_ context.Context, req *baiv1.ListDataRequest) (*baiv1.ListDataResponse, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	res := &baiv1.ListDataResponse{}
	for _, d := range s.p.data {
		res.TotalSize += d.GetSize()
		switch {
		case d.GetSha256() <= req.GetPageToken():
		case len(res.GetData()) < min(int(req.GetPageSize()), 2):
			res.Data = append(res.Data, d)
		default:
			res.NextPageToken = res.GetData()[len(res.GetData())-1].GetSha256()
		}
	}
	return res, nil
}

// VerifyData says how far it has come once.
func (s dataService) VerifyData(req *baiv1.VerifyDataRequest, stream grpc.ServerStreamingServer[baiv1.VerifyDataResponse]) error {
	s.p.mu.Lock()
	i := s.at(req.GetSha256())
	res := &baiv1.VerifyDataResponse{Verdict: baiv1.VerifyDataResponse_VERDICT_WHOLE}
	if i >= 0 {
		res.Total = s.p.data[i].GetSize()
		res.Done = res.GetTotal()
	}
	if i >= 0 && s.p.damaged[req.GetSha256()] {
		res.Verdict = baiv1.VerifyDataResponse_VERDICT_DAMAGED
		s.p.data = slices.Delete(s.p.data, i, i+1)
	}
	s.p.mu.Unlock()
	if i < 0 {
		return status.Errorf(codes.NotFound, "no data with sha256 %s is stored", req.GetSha256())
	}
	if err := stream.Send(&baiv1.VerifyDataResponse{Done: res.GetTotal() / 2, Total: res.GetTotal()}); err != nil {
		return err
	}
	return stream.Send(res)
}

// EvictData keeps data that runs need.
func (s dataService) EvictData(_ context.Context, req *baiv1.EvictDataRequest) (*baiv1.EvictDataResponse, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	i := s.at(req.GetSha256())
	if i < 0 {
		return &baiv1.EvictDataResponse{}, nil
	}
	if runs := s.p.data[i].GetRuns(); len(runs) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "it is needed by %s", strings.Join(runs, ", "))
	}
	s.p.data = slices.Delete(s.p.data, i, i+1)
	return &baiv1.EvictDataResponse{Stored: true}, nil
}

// PrefetchData accepts sources that have a text; the name of a prefetch is its source.
func (s dataService) PrefetchData(_ context.Context, req *baiv1.PrefetchDataRequest) (*baiv1.PrefetchDataResponse, error) {
	if strings.HasPrefix(req.GetSrc(), "ftp:") {
		return nil, status.Error(codes.InvalidArgument, `src: source `+req.GetSrc()+`: nothing is read by "ftp"`)
	}
	return &baiv1.PrefetchDataResponse{Prefetch: req.GetSrc()}, nil
}

// SetPrefetchWaits has a prefetch of a source wait for things before it ends.
func (p *Platform) SetPrefetchWaits(source string, why ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prefetchWaits[source] = why
}

// GetPrefetch says that it was fetched where Put has put something, and that it
// failed where not.
func (s dataService) GetPrefetch(_ context.Context, req *baiv1.GetPrefetchRequest) (*baiv1.GetPrefetchResponse, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if why := s.p.prefetchWaits[req.GetPrefetch()]; len(why) > 0 {
		s.p.prefetchWaits[req.GetPrefetch()] = why[1:]
		return &baiv1.GetPrefetchResponse{State: baiv1.GetPrefetchResponse_STATE_FETCHING, Message: why[0]}, nil
	}
	text, ok := s.p.uriTexts[req.GetPrefetch()]
	if !ok {
		return &baiv1.GetPrefetchResponse{
			State: baiv1.GetPrefetchResponse_STATE_FAILED, Reason: "FetchFailed",
			Message: "source " + req.GetPrefetch() + " answers 404 Not Found",
		}, nil
	}
	return &baiv1.GetPrefetchResponse{State: baiv1.GetPrefetchResponse_STATE_FETCHED, Sha256: Digest(text), Size: int64(len(text))}, nil
}
