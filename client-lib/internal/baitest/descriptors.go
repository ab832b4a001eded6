package baitest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A draft is one version of a descriptor that is kept.
type draft struct {
	about *baiv1.StoredDescriptor
	text  string
}

// A file was kept of a run.
type file struct {
	about *baiv1.Artifact
	data  string
}

// AddArtifact adds a file to a run.
func (p *Platform) AddArtifact(id, name, data string) {
	p.update(id, func(r *record) {
		about := &baiv1.Artifact{Name: name, Size: int64(len(data)), Sha256: Digest(data), Time: timestamppb.New(p.now)}
		r.files = append(r.files, &file{about, data})
	})
}

// Digest is the sha256 of a text, hex.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// CorruptArtifact changes the bytes of an artifact, but not its digest.
func (p *Platform) CorruptArtifact(id, name, data string) {
	p.update(id, func(r *record) {
		for _, f := range r.files {
			if f.about.GetName() == name {
				f.data = data
			}
		}
	})
}

// AddURI makes a text be found at a URI.
func (p *Platform) AddURI(uri, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uriTexts[uri] = text
}

// ListArtifacts returns the files of a run.
func (p *Platform) ListArtifacts(_ context.Context, req *baiv1.ListArtifactsRequest) (*baiv1.ListArtifactsResponse, error) {
	r, err := p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*baiv1.Artifact
	for _, f := range r.files {
		all = append(all, proto.CloneOf(f.about))
	}
	slices.SortFunc(all, func(a, b *baiv1.Artifact) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return &baiv1.ListArtifactsResponse{Artifacts: all}, nil
}

// GetArtifact sends a file, a few bytes in each message.
func (p *Platform) GetArtifact(req *baiv1.GetArtifactRequest, s grpc.ServerStreamingServer[baiv1.GetArtifactResponse]) error {
	r, err := p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return err
	}
	p.mu.Lock()
	files := slices.Clone(r.files)
	p.mu.Unlock()
	i := slices.IndexFunc(files, func(f *file) bool { return f.about.GetName() == req.GetName() })
	if i < 0 {
		return status.Errorf(codes.NotFound, "there is no artifact %q", req.GetName())
	}
	data := []byte(files[i].data)
	if req.GetOffset() < 0 || req.GetOffset() > int64(len(data)) {
		return status.Errorf(codes.OutOfRange, "offset %d of %d bytes", req.GetOffset(), len(data))
	}
	for some := range slices.Chunk(data[req.GetOffset():], batch) {
		if err := s.Send(&baiv1.GetArtifactResponse{Data: some}); err != nil {
			return err
		}
	}
	return nil
}

// applyOverrides is the text of a descriptor with overrides in it.
func applyOverrides(name string, text []byte, overrides []*baiv1.Override) (string, error) {
	if len(overrides) == 0 {
		return string(text), nil
	}
	set := make([]parser.Override, len(overrides))
	for i, o := range overrides {
		set[i] = parser.Override{Path: o.GetPath(), Value: o.GetValue()}
	}
	_, applied, faults := suite.ParseWith(parser.Parser{}, name, text, set)
	if len(faults.Errors()) > 0 {
		return "", invalid(faults)
	}
	return string(applied), nil
}

func invalid(faults parser.Faults) error {
	var details []proto.Message
	for _, f := range toProto(faults.Errors()) {
		details = append(details, f)
	}
	return Status(codes.InvalidArgument, "the descriptor is invalid", details...)
}

func toProto(faults parser.Faults) []*baiv1.Fault {
	var all []*baiv1.Fault
	for _, f := range faults {
		all = append(all, &baiv1.Fault{
			File: f.File, Line: int32(f.Line), Column: int32(f.Column), Path: f.Path,
			Code: f.Code, Message: f.Message, Remedy: f.Remedy, Warning: f.Warning,
		})
	}
	return all
}

// A keeper is the part of a platform that keeps descriptors.
type descriptorService struct {
	baiv1.UnimplementedDescriptorServiceServer

	p *Platform
}

// ValidateDescriptor says every fault.
func (k descriptorService) ValidateDescriptor(_ context.Context,
	req *baiv1.ValidateDescriptorRequest,
) (*baiv1.ValidateDescriptorResponse, error) {
	set := make([]parser.Override, len(req.GetOverrides()))
	for i, o := range req.GetOverrides() {
		set[i] = parser.Override{Path: o.GetPath(), Value: o.GetValue()}
	}
	_, _, faults := suite.ParseWith(parser.Parser{}, req.GetDescriptorFile(), req.GetDescriptorToml(), set)
	return &baiv1.ValidateDescriptorResponse{Faults: toProto(faults)}, nil
}

// RenderDescriptor returns a manifest that says which file it is of.
func (k descriptorService) RenderDescriptor(_ context.Context,
	req *baiv1.RenderDescriptorRequest,
) (*baiv1.RenderDescriptorResponse, error) {
	if _, faults := parser.Parse(req.GetDescriptorFile(), req.GetDescriptorToml()); len(faults.Errors()) > 0 {
		return nil, invalid(faults)
	}
	return &baiv1.RenderDescriptorResponse{Manifest: fmt.Sprintf("# %s, %d overrides\nkind: Job\n", req.GetDescriptorFile(),
		len(req.GetOverrides()))}, nil
}

// PushDescriptor keeps a version.
func (k descriptorService) PushDescriptor(_ context.Context, req *baiv1.PushDescriptorRequest) (*baiv1.PushDescriptorResponse, error) {
	_, faults := parser.Parse(req.GetDescriptorFile(), req.GetDescriptorToml())
	if len(faults.Errors()) > 0 {
		return nil, invalid(faults)
	}
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	team := cmp.Or(req.GetNamespace(), "default")
	text, version := string(req.GetDescriptorToml()), int32(1)
	if last := k.newest(team, req.GetName()); last != nil {
		if last.text == text {
			return &baiv1.PushDescriptorResponse{Descriptor_: last.about, Repeated: true, Warnings: toProto(faults)}, nil
		}
		version = last.about.GetVersion() + 1
	}
	about := &baiv1.StoredDescriptor{
		Name: req.GetName(), Version: version, Namespace: team, Owner: "ann", Sha256: Digest(text), CreateTime: timestamppb.New(k.p.now),
	}
	k.p.descriptors = append(k.p.descriptors, &draft{about, text})
	return &baiv1.PushDescriptorResponse{Descriptor_: about, Warnings: toProto(faults)}, nil
}

func (k descriptorService) newest(team, name string) *draft {
	for _, d := range slices.Backward(k.p.descriptors) {
		if d.about.GetNamespace() == team && d.about.GetName() == name {
			return d
		}
	}
	return nil
}

// ListDescriptors returns a page; the token is the number of those before it.
func (k descriptorService) ListDescriptors(_ context.Context, req *baiv1.ListDescriptorsRequest) (*baiv1.ListDescriptorsResponse, error) {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	var all []*baiv1.StoredDescriptor
	for _, d := range slices.Backward(k.p.descriptors) {
		newest := k.newest(d.about.GetNamespace(), d.about.GetName()) == d
		if d.about.GetNamespace() == cmp.Or(req.GetNamespace(), "default") &&
			(d.about.GetName() == req.GetName() || req.GetName() == "" && newest) {
			all = append(all, d.about)
		}
	}
	slices.SortStableFunc(all, func(a, b *baiv1.StoredDescriptor) int { return cmp.Compare(a.GetName(), b.GetName()) })
	from, _ := strconv.Atoi(req.GetPageToken()) // empty: 0
	to := min(from+int(req.GetPageSize()), len(all))
	res := &baiv1.ListDescriptorsResponse{Descriptors: all[min(from, to):to]}
	if to < len(all) {
		res.NextPageToken = strconv.Itoa(to)
	}
	return res, nil
}

// GetDescriptor returns a descriptor that was pushed or Put.
func (k descriptorService) GetDescriptor(_ context.Context, req *baiv1.GetDescriptorRequest) (*baiv1.GetDescriptorResponse, error) {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	stored, ok := strings.CutPrefix(req.GetUri(), "stored:")
	if !ok {
		text, exists := k.p.uriTexts[req.GetUri()]
		if !exists {
			return nil, status.Errorf(codes.NotFound, "there is no descriptor at %s", req.GetUri())
		}
		return descriptorResponse(req.GetUri(), text), nil
	}
	name, version, _ := strings.Cut(stored, "@")
	for _, d := range slices.Backward(k.p.descriptors) {
		if d.about.GetName() == name && d.about.GetNamespace() == cmp.Or(req.GetNamespace(), "default") &&
			(version == "" || version == strconv.Itoa(int(d.about.GetVersion()))) {
			return descriptorResponse(fmt.Sprintf("stored:%s@%d", name, d.about.GetVersion()), d.text), nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no descriptor %q is kept", stored)
}

func descriptorResponse(uri, text string) *baiv1.GetDescriptorResponse {
	return &baiv1.GetDescriptorResponse{DescriptorToml: []byte(text), Origination: &baiv1.Origination{Uri: uri, Sha256: Digest(text)}}
}

// StoreDescriptor keeps a text as the next version of a descriptor of team "default", even
// if it is invalid.
func (p *Platform) StoreDescriptor(name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	version := int32(1)
	if last := (descriptorService{p: p}).newest("default", name); last != nil {
		version = last.about.GetVersion() + 1
	}
	about := &baiv1.StoredDescriptor{
		Name: name, Version: version, Namespace: "default", Owner: "ann", Sha256: Digest(text), CreateTime: timestamppb.New(p.now),
	}
	p.descriptors = append(p.descriptors, &draft{about, text})
}
