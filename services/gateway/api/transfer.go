package api

import (
	"context"
	"time"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Archiver exports and imports whole runs.
type Archiver interface {
	// Head does the same as archive.Archiver.Head.
	Head(ctx context.Context, run store.Run) (archive.Header, error)
	// Export does the same as archive.Archiver.Export.
	Export(ctx context.Context, run store.Run, place string, send func(archive.Piece) error) error
	// Import does the same as archive.Archiver.Import.
	Import(ctx context.Context, begin archive.Begin, stream archive.ImportStream) (archive.Result, error)
}

// transferServer implements bai.v1.TransferService.
type transferServer struct {
	baiv1.UnimplementedTransferServiceServer

	runs        *Server
	archiver    Archiver
	idleTimeout time.Duration
}

// ExportRun implements bai.v1.TransferService.
func (s *transferServer) ExportRun(req *baiv1.ExportRunRequest, stream grpc.ServerStreamingServer[baiv1.ExportRunResponse]) error {
	ctx := stream.Context()
	run, err := s.runs.find(ctx, req)
	if err != nil {
		return err
	}
	head, err := s.archiver.Head(ctx, run)
	if err != nil {
		return err
	}
	err = stream.Send(&baiv1.ExportRunResponse{Place: req.GetPlace(), Export: &baiv1.Export{
		Format: message.Int32(head.Format), RunId: head.Run, PlatformVersion: head.Version,
		Complete: head.Complete, Missing: head.Missing, Dropped: head.Dropped, Awaited: head.Awaited,
	}})
	if err != nil {
		return err
	}
	return s.archiver.Export(ctx, run, req.GetPlace(), func(p archive.Piece) error {
		return stream.Send(&baiv1.ExportRunResponse{File: p.File, Data: p.Data, Last: p.Last, Place: p.Cursor})
	})
}

// ImportRun implements bai.v1.TransferService.
func (s *transferServer) ImportRun(stream grpc.BidiStreamingServer[baiv1.ImportRunRequest, baiv1.ImportRunResponse]) error {
	in := &importStream{stream: stream, requests: rpc.NewReceiver(stream.Recv, s.idleTimeout)}
	defer in.requests.Close()
	first, err := in.requests.Next()
	if err != nil {
		return err
	}
	announced := first.GetImport()
	if announced == nil {
		return rpc.InvalidArgument("import", "is missing in the first request", "say first which files there are")
	}
	begin := archive.Begin{
		Format: int(announced.GetFormat()), Run: announced.GetRunId(), By: request.Caller(stream.Context()),
		History: announced.GetHistory(),
	}
	for _, f := range announced.GetFiles() {
		begin.Files = append(begin.Files, archive.File{Name: f.GetName(), Size: f.GetSize(), SHA256: f.GetSha256()})
	}
	result, err := s.archiver.Import(stream.Context(), begin, in)
	if err != nil {
		return err
	}
	return stream.Send(&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Imported{
		Imported: &baiv1.Imported{RunId: result.Run, Already: result.Already, Notes: result.Notes},
	}})
}

// importStream is the client's side of an import.
type importStream struct {
	stream   grpc.BidiStreamingServer[baiv1.ImportRunRequest, baiv1.ImportRunResponse]
	requests *rpc.Receiver[*baiv1.ImportRunRequest]
}

// Next implements archive.ImportStream.
func (i *importStream) Next() (archive.Piece, error) {
	req, err := i.requests.Next()
	if err != nil {
		return archive.Piece{}, err
	}
	return archive.Piece{File: req.GetFile(), Data: req.GetData(), Last: req.GetLast()}, nil
}

// RequestFiles implements archive.ImportStream.
func (i *importStream) RequestFiles(files []string) error {
	return i.stream.Send(&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Wanted{Wanted: &baiv1.WantedFiles{Files: files}}})
}
