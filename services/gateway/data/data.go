// Package data serves bai.v1.DataService: what the object store holds, for those
// who look after it.
//
// It decides nothing about the data itself: whoever fetches them knows what is
// needed (see Stock).
package data

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Dataset is an object of the object store, and what is known of it.
type Dataset struct {
	SHA256  string // hex
	Size    int64
	Sources []string // that it came from, without credentials
	Runs    []string // that need it
	Created time.Time
	Used    time.Time
}

// Cache is what the object store holds.
type Cache interface {
	// List returns all of it, in the order of the digests.
	List(ctx context.Context) ([]Dataset, error)
	// Verify reads an object and reports whether it is whole; it tells read,
	// often, how many bytes of how many it has read. It forgets one that is not,
	// and says store.ErrNotFound for one that is not there.
	Verify(ctx context.Context, sha256 string, read func(done, total int64)) (whole bool, err error)
	// Evict removes an object. It says store.ErrNotFound for one that is not
	// there, and *InUseError for one that must stay.
	Evict(ctx context.Context, sha256 string) error
}

// Source is what is to be fetched.
type Source struct {
	URL    string
	MD5    string // hex, lower case; may be empty
	SHA256 string // likewise
}

// Prefetch is how a prefetch stands.
type Prefetch struct {
	Done     bool
	SHA256   string // of what came, once it is over
	Size     int64
	Revision string // of a repository
	Reason   string // why nothing came; empty where something did
	Message  string // of one that failed; of one that is not over, what it waits for
}

// Prefetcher fetches what no run wants yet.
type Prefetcher interface {
	// Prefetch orders a source, and says how the order is called. It says
	// *InvalidSourceError for a source that is wrong in itself.
	Prefetch(ctx context.Context, s Source) (name string, err error)
	// PrefetchStatus says how an order stands, or store.ErrNotFound.
	PrefetchStatus(ctx context.Context, name string) (Prefetch, error)
}

// InUseError says why data must stay.
type InUseError struct{ Message string }

// Error implements error.
func (e *InUseError) Error() string { return e.Message }

// InvalidSourceError says why a source is never fetched.
type InvalidSourceError struct{ Message string } // names it, without its credentials

// Error implements error.
func (e *InvalidSourceError) Error() string { return e.Message }

// Server implements bai.v1.DataService. It may be used by several goroutines.
type Server struct {
	baiv1.UnimplementedDataServiceServer

	cache      Cache
	prefetcher Prefetcher
}

// New returns a Server.
func New(cache Cache, prefetcher Prefetcher) *Server {
	return &Server{cache: cache, prefetcher: prefetcher}
}

// ListData implements bai.v1.DataService.
func (s *Server) ListData(ctx context.Context, req *baiv1.ListDataRequest) (*baiv1.ListDataResponse, error) {
	after, limit, fault := pageOf(req)
	if fault != nil {
		return nil, invalid(*fault)
	}
	all, err := s.cache.List(ctx)
	if err != nil {
		return nil, err
	}
	page, next := paginate(all, after, limit)
	resp := &baiv1.ListDataResponse{NextPageToken: next}
	for _, d := range all {
		resp.TotalSize += d.Size
	}
	for _, d := range page {
		resp.Data = append(resp.Data, d.message())
	}
	return resp, nil
}

func (d Dataset) message() *baiv1.StoredData {
	return &baiv1.StoredData{
		Sha256: d.SHA256, Size: d.Size, Sources: d.Sources, Runs: d.Runs, CreateTime: timestampOf(d.Created), UseTime: timestampOf(d.Used),
	}
}

func timestampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// progressInterval is the time between two words about how far a verification has come.
const progressInterval = time.Second

// VerifyData implements bai.v1.DataService.
func (s *Server) VerifyData(req *baiv1.VerifyDataRequest, stream grpc.ServerStreamingServer[baiv1.VerifyDataResponse]) error {
	if fault := digest("sha256", req.GetSha256(), sha256Digits, true); fault != nil {
		return invalid(*fault)
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	var last baiv1.VerifyDataResponse
	lastSent := time.Now()
	whole, err := s.cache.Verify(ctx, req.GetSha256(), func(done, total int64) {
		last.Done, last.Total = done, total
		if time.Since(lastSent) < progressInterval {
			return
		}
		lastSent = time.Now()
		if err := stream.Send(&baiv1.VerifyDataResponse{Done: done, Total: total}); err != nil {
			cancel(err)
		}
	})
	if errors.Is(err, store.ErrNotFound) {
		return notStored(req.GetSha256())
	}
	if err != nil {
		return err
	}
	last.Verdict = baiv1.VerifyDataResponse_VERDICT_DAMAGED
	if whole {
		last.Verdict = baiv1.VerifyDataResponse_VERDICT_WHOLE
	}
	return stream.Send(&last)
}

// EvictData implements bai.v1.DataService.
func (s *Server) EvictData(ctx context.Context, req *baiv1.EvictDataRequest) (*baiv1.EvictDataResponse, error) {
	if fault := digest("sha256", req.GetSha256(), sha256Digits, true); fault != nil {
		return nil, invalid(*fault)
	}
	err := s.cache.Evict(ctx, req.GetSha256())
	var inUse *InUseError
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &baiv1.EvictDataResponse{}, nil
	case errors.As(err, &inUse):
		return nil, status.Error(codes.FailedPrecondition, inUse.Message)
	case err != nil:
		return nil, err
	}
	return &baiv1.EvictDataResponse{Stored: true}, nil
}

// PrefetchData implements bai.v1.DataService.
func (s *Server) PrefetchData(ctx context.Context, req *baiv1.PrefetchDataRequest) (*baiv1.PrefetchDataResponse, error) {
	from, fault := sourceOf(req)
	if fault != nil {
		return nil, invalid(*fault)
	}
	name, err := s.prefetcher.Prefetch(ctx, from)
	if invalidSource := new(InvalidSourceError); errors.As(err, &invalidSource) {
		return nil, invalid(Fault{Field: "src", Message: invalidSource.Message})
	}
	if err != nil {
		return nil, err
	}
	return &baiv1.PrefetchDataResponse{Prefetch: name}, nil
}

// GetPrefetch implements bai.v1.DataService.
func (s *Server) GetPrefetch(ctx context.Context, req *baiv1.GetPrefetchRequest) (*baiv1.GetPrefetchResponse, error) {
	if !validPrefetchName(req.GetPrefetch()) {
		return nil, status.Errorf(codes.NotFound, "there is no prefetch %.100q", req.GetPrefetch())
	}
	p, err := s.prefetcher.PrefetchStatus(ctx, req.GetPrefetch())
	if errors.Is(err, store.ErrNotFound) {
		return nil, status.Errorf(codes.NotFound, "there is no prefetch %q, or it ended long ago", req.GetPrefetch())
	}
	if err != nil {
		return nil, err
	}
	return p.message(), nil
}

func (p Prefetch) message() *baiv1.GetPrefetchResponse {
	resp := &baiv1.GetPrefetchResponse{State: baiv1.GetPrefetchResponse_STATE_FETCHING}
	switch {
	case !p.Done:
		resp.Message = p.Message
	case p.Reason != "":
		resp.State, resp.Reason, resp.Message = baiv1.GetPrefetchResponse_STATE_FAILED, p.Reason, p.Message
	default:
		resp.State, resp.Sha256, resp.Size, resp.Revision = baiv1.GetPrefetchResponse_STATE_FETCHED, p.SHA256, p.Size, p.Revision
	}
	return resp
}

func notStored(sha256 string) error {
	return status.Errorf(codes.NotFound, "no data with sha256 %s is stored", sha256)
}

// invalid says what is wrong with one field of a request.
func invalid(f Fault) error {
	st := status.New(codes.InvalidArgument, fmt.Sprintf("%s: %s", f.Field, f.Message))
	full, err := st.WithDetails(&baiv1.Fault{Path: f.Field, Code: codeRequest, Message: f.Message, Remedy: f.Remedy})
	if err != nil {
		return st.Err()
	}
	return full.Err()
}

// codeRequest is the code of a fault of a request other than SubmitRun.
const codeRequest = "BAI9000"
