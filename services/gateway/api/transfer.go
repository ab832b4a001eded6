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
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/gateway/transfer"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Transfer takes whole runs out of the platform, and into it.
type Transfer interface {
	// Head is that of transfer.Transfer.
	Head(ctx context.Context, run store.Run) (transfer.Header, error)
	// Export is that of transfer.Transfer.
	Export(ctx context.Context, run store.Run, place string, send func(transfer.Piece) error) error
	// Import is that of transfer.Transfer.
	Import(ctx context.Context, begin transfer.Begin, stream transfer.Stream) (transfer.Result, error)
}

// transferServer implements bai.v1.TransferService.
type transferServer struct {
	baiv1.UnimplementedTransferServiceServer

	runs     *Server
	transfer Transfer
	stall    time.Duration
}

// ExportRun implements bai.v1.TransferService.
func (s *transferServer) ExportRun(req *baiv1.ExportRunRequest, stream grpc.ServerStreamingServer[baiv1.ExportRunResponse]) error {
	ctx := stream.Context()
	run, err := s.runs.find(ctx, req)
	if err != nil {
		return err
	}
	head, err := s.transfer.Head(ctx, run)
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
	return s.transfer.Export(ctx, run, req.GetPlace(), func(p transfer.Piece) error {
		return stream.Send(&baiv1.ExportRunResponse{File: p.File, Data: p.Data, Last: p.Last, Place: p.Place})
	})
}

// ImportRun implements bai.v1.TransferService.
func (s *transferServer) ImportRun(stream grpc.BidiStreamingServer[baiv1.ImportRunRequest, baiv1.ImportRunResponse]) error {
	in := &imports{stream: stream, came: awaited(stream.Recv, s.stall)}
	defer in.came.close()
	first, err := in.came.next()
	if err != nil {
		return err
	}
	asked := first.GetImport()
	if asked == nil {
		return invalidArgument("import", "is missing in the first request", "say first which files there are")
	}
	begin := transfer.Begin{Format: int(asked.GetFormat()), Run: asked.GetRunId(), By: caller(stream.Context())}
	for _, f := range asked.GetFiles() {
		begin.Files = append(begin.Files, transfer.File{Name: f.GetName(), Size: f.GetSize(), SHA256: f.GetSha256()})
	}
	result, err := s.transfer.Import(stream.Context(), begin, in)
	if err != nil {
		return err
	}
	return stream.Send(&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Imported{
		Imported: &baiv1.Imported{RunId: result.Run, Already: result.Already, Notes: result.Notes},
	}})
}

// imports is an import under way.
type imports struct {
	stream grpc.BidiStreamingServer[baiv1.ImportRunRequest, baiv1.ImportRunResponse]
	came   *waiting[*baiv1.ImportRunRequest]
}

// Next implements transfer.Stream.
func (i *imports) Next() (transfer.Piece, error) {
	req, err := i.came.next()
	if err != nil {
		return transfer.Piece{}, err
	}
	return transfer.Piece{File: req.GetFile(), Data: req.GetData(), Last: req.GetLast()}, nil
}

// Want implements transfer.Stream.
func (i *imports) Want(files []string) error {
	return i.stream.Send(&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Wanted{Wanted: &baiv1.WantedFiles{Files: files}}})
}

// waiting receives what comes, of which something must from time to time.
type waiting[T any] struct {
	stall time.Duration
	came  chan arrival[T]
	done  chan struct{}
}

type arrival[T any] struct {
	what T
	err  error
}

// awaited receives until there is an error, which there is when the call ends.
func awaited[T any](receive func() (T, error), stall time.Duration) *waiting[T] {
	w := &waiting[T]{stall: stall, came: make(chan arrival[T]), done: make(chan struct{})}
	go func() {
		for {
			what, err := receive()
			select {
			case w.came <- arrival[T]{what, err}:
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
func (w *waiting[T]) close() { close(w.done) }

func (w *waiting[T]) next() (T, error) {
	patience := time.NewTimer(w.stall)
	defer patience.Stop()
	select {
	case a := <-w.came:
		return a.what, a.err
	case <-patience.C:
		var none T
		return none, fmt.Errorf("nothing came for %s", w.stall)
	}
}

// untransferred returns what a user must know of a transfer as a status, nil
// where err says nothing of the kind.
func untransferred(err error) error {
	var (
		file    *transfer.FileError
		state   *transfer.StateError
		taken   *transfer.TakenError
		busy    *transfer.BusyError
		changed *transfer.ChangedError
		stream  *transfer.StreamError
		limit   *artifact.LimitError
		full    *transfer.FullError
	)
	switch {
	case errors.As(err, &file):
		return refuse(faultsOf(intake.Brief(descriptors.Faults{{File: file.File, Line: file.Line, Column: min(file.Line, 1), Path: file.File, Code: codeRequest, Message: file.Message}})))
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Message)
	case errors.As(err, &taken):
		return detail(codes.AlreadyExists, taken.Error(), &baiv1.RunFailure{Reason: "AlreadyExists"})
	case errors.As(err, &busy):
		return status.Error(codes.Aborted, busy.Error())
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
