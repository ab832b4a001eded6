package baitest

import (
	"context"
	"errors"
	"io"
	"maps"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// maxScript is the most code that the platform takes.
const maxScript = 8 << 20

// Scripts returns the code that the platform keeps, by digest.
func (p *Platform) Scripts() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.scripts)
}

// CutUploads has the next uploads break, one after each of so many bytes.
func (p *Platform) CutUploads(after ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = after
}

// A wardrobe is the part of a platform that keeps code.
type scriptService struct {
	baiv1.UnimplementedScriptServiceServer

	p *Platform
}

// GetScript implements bai.v1.ScriptService.
func (w scriptService) GetScript(_ context.Context, req *baiv1.GetScriptRequest) (*baiv1.GetScriptResponse, error) {
	content, ok := w.p.Scripts()[req.GetSha256()]
	if !ok {
		return nil, status.Error(codes.NotFound, "code with sha256 "+req.GetSha256()+" does not exist")
	}
	return &baiv1.GetScriptResponse{Script: &baiv1.Script{Sha256: req.GetSha256(), Size: int64(len(content))}}, nil
}

// UploadScript implements bai.v1.ScriptService.
func (w scriptService) UploadScript(stream grpc.ClientStreamingServer[baiv1.UploadScriptRequest, baiv1.UploadScriptResponse]) error {
	cut := w.p.cut()
	var first *baiv1.UploadScriptRequest
	var content []byte
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if first == nil {
			first = req
		}
		if content = append(content, req.GetData()...); cut >= 0 && len(content) > cut {
			return status.Error(codes.Unavailable, "the server is stopping: call again")
		}
		if first.GetSize() > maxScript {
			return status.Error(codes.ResourceExhausted, "the code is too large")
		}
	}
	if digest := Digest(string(content)); digest != first.GetSha256() || int64(len(content)) != first.GetSize() {
		return status.Error(codes.InvalidArgument, "what came has sha256 "+digest)
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.p.scripts[first.GetSha256()] = string(content)
	return stream.SendAndClose(&baiv1.UploadScriptResponse{Script: &baiv1.Script{Sha256: first.GetSha256(), Size: first.GetSize()}})
}

// cut is after how many bytes this upload breaks; -1 for never.
func (p *Platform) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.cuts) == 0 {
		return -1
	}
	cut := p.cuts[0]
	p.cuts = p.cuts[1:]
	return cut
}
