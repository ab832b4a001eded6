package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Scripts keeps code that is sent along with runs.
type Scripts interface {
	// Find is that of script.Keeper.
	Find(ctx context.Context, sha256 string) (event.Bundle, error)
	// Put is that of script.Keeper.
	Put(ctx context.Context, owner, sha256 string, size int64, body io.Reader) (code event.Bundle, repeated bool, err error)
}

// scriptServer implements bai.v1.ScriptService.
type scriptServer struct {
	baiv1.UnimplementedScriptServiceServer

	scripts     Scripts
	idleTimeout time.Duration // in which a client must send something
}

// GetScript implements bai.v1.ScriptService.
func (s *scriptServer) GetScript(ctx context.Context, req *baiv1.GetScriptRequest) (*baiv1.GetScriptResponse, error) {
	digest := strings.ToLower(req.GetSha256())
	code, err := s.scripts.Find(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound("code with sha256 " + digest)
	}
	if err != nil {
		return nil, err
	}
	return &baiv1.GetScriptResponse{Script: scriptOf(code)}, nil
}

// UploadScript implements bai.v1.ScriptService.
func (s *scriptServer) UploadScript(stream grpc.ClientStreamingServer[baiv1.UploadScriptRequest, baiv1.UploadScriptResponse]) error {
	up := newUpload(stream, s.idleTimeout)
	defer up.close()
	first, err := up.next()
	if err != nil {
		return err
	}
	uploader := owner(stream.Context(), first)
	if faults := submit.CheckOwner(uploader); len(faults) > 0 {
		return &submit.InvalidError{Faults: faults}
	}
	up.remaining = first.GetData()
	code, repeated, err := s.scripts.Put(stream.Context(), uploader, strings.ToLower(first.GetSha256()), first.GetSize(), up)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&baiv1.UploadScriptResponse{Script: scriptOf(code), Repeated: repeated})
}

// upload reads the data of a stream, of which something must come from time to
// time.
type upload struct {
	idleTimeout time.Duration
	received    chan recvRequest
	done        chan struct{}
	remaining   []byte
}

type recvRequest struct {
	req *baiv1.UploadScriptRequest
	err error
}

// newUpload reads from stream until it ends, which it does when its call does.
func newUpload(stream grpc.ClientStreamingServer[baiv1.UploadScriptRequest, baiv1.UploadScriptResponse], idleTimeout time.Duration) *upload {
	u := &upload{idleTimeout: idleTimeout, received: make(chan recvRequest), done: make(chan struct{})}
	go func() {
		for {
			req, err := stream.Recv()
			select {
			case u.received <- recvRequest{req, err}:
			case <-u.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return u
}

// close lets go of the stream: what reads from it ends with the call.
func (u *upload) close() { close(u.done) }

func (u *upload) next() (*baiv1.UploadScriptRequest, error) {
	timer := time.NewTimer(u.idleTimeout)
	defer timer.Stop()
	select {
	case p := <-u.received:
		return p.req, p.err
	case <-timer.C:
		return nil, fmt.Errorf("nothing came for %s", u.idleTimeout)
	}
}

// Read implements io.Reader.
func (u *upload) Read(b []byte) (int, error) {
	for len(u.remaining) == 0 {
		req, err := u.next()
		if err != nil {
			return 0, err
		}
		u.remaining = req.GetData()
	}
	n := copy(b, u.remaining)
	u.remaining = u.remaining[n:]
	return n, nil
}
