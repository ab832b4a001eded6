package api

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Scripts stores the code of users for their runs.
type Scripts interface {
	// Find does the same as bundle.Store.Find.
	Find(ctx context.Context, sha256 string) (event.Bundle, error)
	// Put does the same as bundle.Store.Put.
	Put(ctx context.Context, owner, sha256 string, size int64, body io.Reader) (code event.Bundle, repeated bool, err error)
}

// scriptServer implements bai.v1.ScriptService.
type scriptServer struct {
	baiv1.UnimplementedScriptServiceServer

	scripts     Scripts
	idleTimeout time.Duration // maximum time between two messages of a client
}

// GetScript implements bai.v1.ScriptService.
func (s *scriptServer) GetScript(ctx context.Context, req *baiv1.GetScriptRequest) (*baiv1.GetScriptResponse, error) {
	digest := strings.ToLower(req.GetSha256())
	code, err := s.scripts.Find(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, rpc.NotFound("code with sha256 " + digest)
	}
	if err != nil {
		return nil, err
	}
	return &baiv1.GetScriptResponse{Script: scriptOf(code)}, nil
}

// UploadScript implements bai.v1.ScriptService.
func (s *scriptServer) UploadScript(stream grpc.ClientStreamingServer[baiv1.UploadScriptRequest, baiv1.UploadScriptResponse]) error {
	up := &upload{Receiver: rpc.NewReceiver(stream.Recv, s.idleTimeout)}
	defer up.Close()
	first, err := up.Next()
	if err != nil {
		return err
	}
	uploader := request.Owner(stream.Context(), first)
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

// upload reads the data of a stream.
type upload struct {
	*rpc.Receiver[*baiv1.UploadScriptRequest]

	remaining []byte
}

// Read implements io.Reader.
func (u *upload) Read(b []byte) (int, error) {
	for len(u.remaining) == 0 {
		req, err := u.Next()
		if err != nil {
			return 0, err
		}
		u.remaining = req.GetData()
	}
	n := copy(b, u.remaining)
	u.remaining = u.remaining[n:]
	return n, nil
}
