// Package data has the handlers of bai.v1.DataService: stored data sets and prefetches.
package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Cache lists, verifies and evicts stored data sets. It is a part of
// dataset.Cache.
type Cache interface {
	List(ctx context.Context) ([]dataset.Stored, error)
	Verify(ctx context.Context, sha256 string, onProgress func(done, total int64)) (whole bool, err error)
	Evict(ctx context.Context, sha256 string) error
}

// Prefetcher fetches data before a run needs them. It is a part of dataset.Cache.
type Prefetcher interface {
	Prefetch(ctx context.Context, s dataset.Source) (name string, err error)
	PrefetchResult(ctx context.Context, name string) (ending *dataset.Ending, waitReason string, err error)
}

// Server implements bai.v1.DataService.
type Server struct {
	baiv1.UnimplementedDataServiceServer

	cache      Cache
	prefetcher Prefetcher
}

// NewServer returns a server for the data sets of a cache.
func NewServer(cache Cache, prefetcher Prefetcher) *Server {
	return &Server{cache: cache, prefetcher: prefetcher}
}

// ListData implements bai.v1.DataService.
func (s *Server) ListData(ctx context.Context, req *baiv1.ListDataRequest) (*baiv1.ListDataResponse, error) {
	if req.GetPageSize() < 0 {
		return nil, rpc.InvalidArgument("page_size", "must be 0 or more", "leave it out")
	}
	if checkDigest("page_token", req.GetPageToken(), sha256Digits) != nil {
		return nil, rpc.InvalidArgument("page_token", "is not one that this server gave for this list", "leave it empty for the first page")
	}
	all, err := s.cache.List(ctx)
	if err != nil {
		return nil, err
	}
	page, next := pageOfData(all, req.GetPageToken(), min(cmp.Or(int(req.GetPageSize()), defaultDataPage), maxDataPage))
	resp := &baiv1.ListDataResponse{NextPageToken: next}
	for _, d := range all {
		resp.TotalSize += d.Size
	}
	for _, d := range page {
		resp.Data = append(resp.Data, &baiv1.StoredData{
			Sha256: d.SHA256, Size: d.Size, Sources: d.Sources, Runs: d.Runs, CreateTime: dataTime(d.Created),
			UseTime: dataTime(d.LastUsed),
		})
	}
	return resp, nil
}

func dataTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Sizes of the pages of data sets.
const (
	defaultDataPage = 50
	maxDataPage     = 1000
)

// pageOfData returns up to limit data sets with a digest greater than after, and the
// token of the next page. The data sets in all are sorted by digest.
func pageOfData(all []dataset.Stored, after string, limit int) (page []dataset.Stored, next string) {
	from, found := slices.BinarySearchFunc(all, after,
		func(d dataset.Stored, sha256 string) int { return strings.Compare(d.SHA256, sha256) })
	if found {
		from++
	}
	page = all[from:min(from+limit, len(all))]
	if from+len(page) < len(all) {
		next = page[len(page)-1].SHA256
	}
	return page, next
}

// verifyInterval is the time between two progress reports of a verification.
const verifyInterval = time.Second

// VerifyData implements bai.v1.DataService.
func (s *Server) VerifyData(req *baiv1.VerifyDataRequest, stream grpc.ServerStreamingServer[baiv1.VerifyDataResponse]) error {
	if err := needDigest(req); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	var last baiv1.VerifyDataResponse
	lastSent := time.Now()
	whole, err := s.cache.Verify(ctx, req.GetSha256(), func(done, total int64) {
		last.Done, last.Total = done, total
		if time.Since(lastSent) < verifyInterval {
			return
		}
		lastSent = time.Now()
		if err := stream.Send(&baiv1.VerifyDataResponse{Done: done, Total: total}); err != nil {
			cancel(err)
		}
	})
	if errors.Is(err, store.ErrNotFound) {
		return status.Errorf(codes.NotFound, "no data with sha256 %s is stored", req.GetSha256())
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
	if err := needDigest(req); err != nil {
		return nil, err
	}
	err := s.cache.Evict(ctx, req.GetSha256())
	if errors.Is(err, store.ErrNotFound) {
		return &baiv1.EvictDataResponse{}, nil
	}
	if inUse, ok := errors.AsType[*dataset.InUseError](err); ok {
		return nil, status.Error(codes.FailedPrecondition, inUse.Message)
	}
	if err != nil {
		return nil, err
	}
	return &baiv1.EvictDataResponse{Stored: true}, nil
}

// PrefetchData implements bai.v1.DataService.
func (s *Server) PrefetchData(ctx context.Context, req *baiv1.PrefetchDataRequest) (*baiv1.PrefetchDataResponse, error) {
	from, err := sourceOf(req)
	if err != nil {
		return nil, err
	}
	name, err := s.prefetcher.Prefetch(ctx, from)
	if refused, ok := errors.AsType[*source.Error](err); ok {
		return nil, rpc.InvalidArgument("src", refused.Message, "")
	}
	if err != nil {
		return nil, err
	}
	return &baiv1.PrefetchDataResponse{Prefetch: name}, nil
}

// GetPrefetch implements bai.v1.DataService.
func (s *Server) GetPrefetch(ctx context.Context, req *baiv1.GetPrefetchRequest) (*baiv1.GetPrefetchResponse, error) {
	if !isPrefetchName(req.GetPrefetch()) {
		return nil, status.Errorf(codes.NotFound, "there is no prefetch %.100q", req.GetPrefetch())
	}
	ending, waitReason, err := s.prefetcher.PrefetchResult(ctx, req.GetPrefetch())
	if errors.Is(err, store.ErrNotFound) {
		return nil, status.Errorf(codes.NotFound, "there is no prefetch %q, or it ended long ago", req.GetPrefetch())
	}
	if err != nil {
		return nil, err
	}
	return prefetchOf(ending, waitReason), nil
}

func prefetchOf(ending *dataset.Ending, waitReason string) *baiv1.GetPrefetchResponse {
	switch {
	case ending == nil:
		return &baiv1.GetPrefetchResponse{State: baiv1.GetPrefetchResponse_STATE_FETCHING, Message: waitReason}
	case ending.Finished != nil:
		return &baiv1.GetPrefetchResponse{
			State: baiv1.GetPrefetchResponse_STATE_FAILED, Reason: string(ending.Finished.Reason), Message: ending.Finished.Message,
		}
	}
	resp := &baiv1.GetPrefetchResponse{State: baiv1.GetPrefetchResponse_STATE_FETCHED}
	for _, d := range ending.Data { // exactly one
		resp.Sha256, resp.Size, resp.Revision = d.SHA256, d.Size, d.Revision
	}
	return resp
}

// Numbers of hexadecimal digits in digests.
const (
	md5Digits    = 32
	sha256Digits = 64
)

// maxSourceURL is the maximum number of bytes in a URL.
const maxSourceURL = 4096

// needDigest returns the fault of a request's digest as a status; an empty digest is a
// fault.
func needDigest(req interface{ GetSha256() string }) error {
	if req.GetSha256() == "" {
		return invalidDigest("sha256", "", sha256Digits)
	}
	return checkDigest("sha256", req.GetSha256(), sha256Digits)
}

// checkDigest returns the fault of a digest as a status; an empty digest is valid.
func checkDigest(field, text string, digits int) error {
	if text == "" || len(text) == digits && strings.Trim(text, "0123456789abcdef") == "" {
		return nil
	}
	return invalidDigest(field, text, digits)
}

func invalidDigest(field, text string, digits int) error {
	return rpc.InvalidArgument(field, fmt.Sprintf("%.100q is not %d hexadecimal digits in lower case", text, digits), "")
}

// sourceOf returns the source that a request names, without checking that the source
// can be read.
func sourceOf(req *baiv1.PrefetchDataRequest) (dataset.Source, error) {
	s := dataset.Source{URL: req.GetSrc(), MD5: strings.ToLower(req.GetMd5()), SHA256: strings.ToLower(req.GetSha256())}
	switch {
	case s.URL == "":
		return s, rpc.InvalidArgument("src", "is missing", "give the URL of the data")
	case len(s.URL) > maxSourceURL:
		return s, rpc.InvalidArgument("src", fmt.Sprintf("has %d bytes, %d at most", len(s.URL), maxSourceURL), "")
	}
	return s, cmp.Or(checkDigest("md5", s.MD5, md5Digits), checkDigest("sha256", s.SHA256, sha256Digits))
}

// isPrefetchName reports whether name has the form of a prefetch's name.
func isPrefetchName(name string) bool {
	return len(name) < 100 && strings.HasPrefix(name, "prefetch-") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
