package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/gateway/script"
	"github.com/benchmark-ai/bai/services/gateway/shelf"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// answer returns err as a status: what is not typed means that something the
// gateway needs is away. Nil and statuses stay as they are.
func answer(err error) error {
	if _, told := status.FromError(err); told {
		return err
	}
	var (
		invalid     *intake.InvalidError
		unsupported *intake.UnsupportedError
		scheduled   *intake.ScheduleError
		taken       *intake.TakenError
		full        *intake.FullError
		unavailable *intake.UnavailableError
	)
	if refusal := cmp.Or(refusal(err), untransferred(err)); refusal != nil {
		return refusal
	}
	switch {
	case errors.As(err, &invalid):
		return refuse(faultsOf(invalid.Faults))
	case errors.As(err, &unsupported), errors.As(err, &scheduled):
		return status.Error(codes.Unimplemented, err.Error())
	case errors.As(err, &taken):
		return detail(codes.AlreadyExists, err.Error(), &baiv1.RunFailure{RunId: taken.Run, Reason: "AlreadyExists"})
	case errors.As(err, &full):
		return status.Error(codes.ResourceExhausted, full.Error())
	case errors.As(err, &unavailable) && unavailable.Run != "":
		return detail(codes.Unavailable, err.Error(), &baiv1.RunFailure{RunId: unavailable.Run, Reason: "NotPublished"})
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, store.ErrCursor):
		return invalidArgument("cursor", "is not one that this server gave for this request", "leave it empty to begin anew")
	}
	return status.Error(codes.Unavailable, err.Error())
}

// refusal returns what a user must change about a descriptor or a file as a
// status, nil where err says nothing of the kind.
func refusal(err error) error {
	var (
		ref     *shelf.RefError
		missing *shelf.MissingError
		source  *shelf.SourceError
		name    *artifact.NameError
		digest  *script.DigestError
		limit   *script.LimitError
		body    *script.BodyError
		offset  *artifact.OffsetError
	)
	switch {
	case errors.As(err, &ref):
		return invalidArgument("uri", ref.Message, ref.Remedy)
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &source) && source.User:
		return invalidArgument("uri", source.Message, "")
	case errors.As(err, &name):
		return invalidArgument("name", name.Why, "give a name as ListArtifacts does")
	case errors.As(err, &digest):
		return invalidArgument("sha256", digest.Message, "")
	case errors.As(err, &limit):
		return status.Error(codes.ResourceExhausted, limit.Message)
	case errors.As(err, &body):
		return status.Error(codes.Aborted, body.Error())
	case errors.As(err, &offset):
		return status.Error(codes.OutOfRange, offset.Error())
	}
	return nil
}

// refuse says what the user must change. The first fault is in the text, for
// clients that do not read details.
func refuse(faults []*baiv1.Fault) error {
	f := faults[0]
	text := f.GetMessage()
	if f.GetPath() != "" {
		text = f.GetPath() + ": " + text
	}
	if f.GetLine() > 0 {
		text = fmt.Sprintf("%s:%d:%d: %s", f.GetFile(), f.GetLine(), f.GetColumn(), text)
	}
	if n := len(faults) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	details := make([]protoadapt.MessageV1, len(faults))
	for i, f := range faults {
		details[i] = protoadapt.MessageV1Of(f)
	}
	return with(codes.InvalidArgument, text, details...)
}

// invalidArgument says what is wrong with one field of a request.
func invalidArgument(field, message, remedy string) error {
	return refuse([]*baiv1.Fault{{Path: field, Code: codeRequest, Message: message, Remedy: remedy}})
}

// codeRequest is the code of a fault of a request other than SubmitRun.
const codeRequest = "BAI9000"

func detail(code codes.Code, text string, f *baiv1.RunFailure) error {
	return with(code, text, protoadapt.MessageV1Of(f))
}

func with(code codes.Code, text string, details ...protoadapt.MessageV1) error {
	s := status.New(code, text)
	full, err := s.WithDetails(details...)
	if err != nil {
		return s.Err()
	}
	return full.Err()
}

func notFound(what string) error { return status.Error(codes.NotFound, what+" does not exist") }
