package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Archiver takes whole runs out of the platform, and into it.
type Archiver interface {
	// Head is that of transfer.Transfer.
	Head(ctx context.Context, run store.Run) (archive.Header, error)
	// Export is that of transfer.Transfer.
	Export(ctx context.Context, run store.Run, place string, send func(archive.Piece) error) error
	// Import is that of transfer.Transfer.
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
		Format: int32Of(head.Format), RunId: head.Run, PlatformVersion: head.Version,
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
	in := &importStream{stream: stream, requests: newReceiver(stream.Recv, s.idleTimeout)}
	defer in.requests.close()
	first, err := in.requests.next()
	if err != nil {
		return err
	}
	announced := first.GetImport()
	if announced == nil {
		return invalidArgument("import", "is missing in the first request", "say first which files there are")
	}
	begin := archive.Begin{Format: int(announced.GetFormat()), Run: announced.GetRunId(), By: caller(stream.Context())}
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

// importStream is an import under way.
type importStream struct {
	stream   grpc.BidiStreamingServer[baiv1.ImportRunRequest, baiv1.ImportRunResponse]
	requests *receiver[*baiv1.ImportRunRequest]
}

// Next implements transfer.Stream.
func (i *importStream) Next() (archive.Piece, error) {
	req, err := i.requests.next()
	if err != nil {
		return archive.Piece{}, err
	}
	return archive.Piece{File: req.GetFile(), Data: req.GetData(), Last: req.GetLast()}, nil
}

// RequestFiles implements transfer.Stream.
func (i *importStream) RequestFiles(files []string) error {
	return i.stream.Send(&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Wanted{Wanted: &baiv1.WantedFiles{Files: files}}})
}

// receiver receives what comes, of which something must from time to time.
type receiver[T any] struct {
	idleTimeout time.Duration
	received    chan recvResult[T]
	done        chan struct{}
}

type recvResult[T any] struct {
	msg T
	err error
}

// newReceiver receives until there is an error, which there is when the call ends.
func newReceiver[T any](receive func() (T, error), idleTimeout time.Duration) *receiver[T] {
	w := &receiver[T]{idleTimeout: idleTimeout, received: make(chan recvResult[T]), done: make(chan struct{})}
	go func() {
		for {
			what, err := receive()
			select {
			case w.received <- recvResult[T]{what, err}:
			case <-w.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

// close lets go of the stream: what receives from it ends with the call.
func (w *receiver[T]) close() { close(w.done) }

func (w *receiver[T]) next() (T, error) {
	timer := time.NewTimer(w.idleTimeout)
	defer timer.Stop()
	select {
	case a := <-w.received:
		return a.msg, a.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("nothing came for %s", w.idleTimeout)
	}
}

// archiveErrorStatus returns what a user must know of a transfer as a status, nil
// where err says nothing of the kind.
func archiveErrorStatus(err error) error {
	var (
		file       *archive.FileError
		state      *archive.PreconditionError
		exists     *archive.RunExistsError
		inProgress *archive.ImportInProgressError
		changed    *archive.ChangedError
		stream     *archive.StreamError
		limit      *artifact.LimitError
		full       *archive.StorageFullError
	)
	switch {
	case errors.As(err, &file):
		return faultsStatus(faultsOf(submit.TruncateFaults(descriptors.Faults{{File: file.File, Line: file.Line, Column: min(file.Line, 1), Path: file.File, Code: codeRequest, Message: file.Message}})))
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Message)
	case errors.As(err, &exists):
		return failureStatus(codes.AlreadyExists, exists.Error(), &baiv1.RunFailure{Reason: "AlreadyExists"})
	case errors.As(err, &inProgress):
		return status.Error(codes.Aborted, inProgress.Error())
	case errors.As(err, &changed):
		return status.Error(codes.Aborted, changed.Error())
	case errors.As(err, &stream):
		return status.Error(codes.Aborted, stream.Error())
	case errors.As(err, &limit):
		return status.Error(codes.ResourceExhausted, limit.Message)
	case errors.As(err, &full):
		return status.Error(codes.ResourceExhausted, full.Error())
	}
	return nil
}
