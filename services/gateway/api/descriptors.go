package api

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Catalog stores descriptors.
type Catalog interface {
	// Push does the same as catalog.Catalog.Push.
	Push(ctx context.Context, p catalog.Push) (kept catalog.StoredDescriptor, repeated bool, warnings parser.Faults, err error)
	// List does the same as catalog.Catalog.List.
	List(ctx context.Context, namespace, name, token string, limit int) (kept []catalog.StoredDescriptor, next string, err error)
	// Find does the same as catalog.Catalog.Find.
	Find(ctx context.Context, namespace, uri string) (text []byte, from event.Provenance, err error)
}

// Renderer renders the objects of a run without creating them.
type Renderer interface {
	// Render returns the objects of a run of d as YAML documents. The descriptor d was
	// read from text. The run has code sent along if d asks for it or withCode is set.
	// An error tells the user why there can be no objects. The same descriptor gives
	// the same bytes.
	Render(d *descriptors.Descriptor, text []byte, withCode bool) ([]byte, error)
}

// descriptorServer implements bai.v1.DescriptorService.
type descriptorServer struct {
	baiv1.UnimplementedDescriptorServiceServer

	catalog  Catalog
	renderer Renderer
	parser   parser.Parser
}

// ValidateDescriptor implements bai.v1.DescriptorService.
func (s *descriptorServer) ValidateDescriptor(
	_ context.Context, req *baiv1.ValidateDescriptorRequest,
) (*baiv1.ValidateDescriptorResponse, error) {
	_, _, faults := submit.Parse(s.parser.In(req.GetNamespace()), req.GetDescriptorFile(), req.GetDescriptorToml(),
		overridesFrom(req.GetOverrides()))
	return &baiv1.ValidateDescriptorResponse{Faults: truncateFaults(faultsOf(faults))}, nil
}

// truncateFaults returns as many faults as fit in one response.
func truncateFaults(faults []*baiv1.Fault) []*baiv1.Fault {
	size := 0
	for i, f := range faults {
		if size += proto.Size(f) + 8; size > rpc.MaxResponse {
			return faults[:i]
		}
	}
	return faults
}

// RenderDescriptor implements bai.v1.DescriptorService.
func (s *descriptorServer) RenderDescriptor(
	_ context.Context, req *baiv1.RenderDescriptorRequest,
) (*baiv1.RenderDescriptorResponse, error) {
	if s.renderer == nil {
		return nil, &submit.UnsupportedError{Feature: "rendered descriptors"}
	}
	d, text, faults := submit.Parse(s.parser.In(req.GetNamespace()), req.GetDescriptorFile(), req.GetDescriptorToml(),
		overridesFrom(req.GetOverrides()))
	if len(faults.Errors()) > 0 {
		return nil, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	manifest, err := s.renderer.Render(d, text, req.GetWithScript())
	if err != nil {
		return nil, rpc.InvalidArgument("", err.Error(), "")
	}
	return &baiv1.RenderDescriptorResponse{Manifest: string(manifest)}, nil
}

// PushDescriptor implements bai.v1.DescriptorService.
func (s *descriptorServer) PushDescriptor(ctx context.Context, req *baiv1.PushDescriptorRequest) (*baiv1.PushDescriptorResponse, error) {
	stored, repeated, warnings, err := s.catalog.Push(ctx, catalog.Push{
		Namespace: request.Namespace(req), Name: req.GetName(), Owner: request.Caller(ctx), File: req.GetDescriptorFile(),
		Text: req.GetDescriptorToml(),
	})
	if err != nil {
		return nil, err
	}
	return &baiv1.PushDescriptorResponse{Descriptor_: storedDescriptorOf(stored), Repeated: repeated, Warnings: faultsOf(warnings)}, nil
}

// ListDescriptors implements bai.v1.DescriptorService.
func (s *descriptorServer) ListDescriptors(ctx context.Context, req *baiv1.ListDescriptorsRequest) (*baiv1.ListDescriptorsResponse, error) {
	limit, err := request.PageSize(req)
	if err != nil {
		return nil, err
	}
	stored, next, err := s.catalog.List(ctx, request.Namespace(req), req.GetName(), req.GetPageToken(), limit)
	if errors.Is(err, store.ErrCursor) {
		return nil, request.InvalidPageToken(" for this list")
	}
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListDescriptorsResponse{NextPageToken: next}
	for _, k := range stored {
		resp.Descriptors = append(resp.Descriptors, storedDescriptorOf(k))
	}
	return resp, nil
}

// GetDescriptor implements bai.v1.DescriptorService.
func (s *descriptorServer) GetDescriptor(ctx context.Context, req *baiv1.GetDescriptorRequest) (*baiv1.GetDescriptorResponse, error) {
	text, from, err := s.catalog.Find(ctx, request.Namespace(req), req.GetUri())
	if err != nil {
		return nil, err
	}
	return &baiv1.GetDescriptorResponse{DescriptorToml: text, Origination: provenanceOf(&from)}, nil
}

func storedDescriptorOf(k catalog.StoredDescriptor) *baiv1.StoredDescriptor {
	return &baiv1.StoredDescriptor{
		Name: k.Name, Version: message.Int32(k.Version), Namespace: k.Namespace, Owner: k.Owner, Sha256: k.SHA256,
		CreateTime: message.Time(k.Created),
	}
}
