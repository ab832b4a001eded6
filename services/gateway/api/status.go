package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// statusOf returns err as a status, for every handler. Nil and statuses are returned
// unchanged. An error without a type of its own means that a store or broker is
// unavailable, and becomes UNAVAILABLE.
func statusOf(err error) error {
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	var (
		invalid     *submit.InvalidError
		unsupported *submit.UnsupportedError
		scheduled   *submit.ScheduleError
		asked       *submit.SetError
		taken       *submit.NotUniqueError
		full        *submit.StorageFullError
		unavailable *submit.UnavailableError
	)
	if userErr := cmp.Or(userErrorStatus(err), archiveErrorStatus(err), scheduleErrorStatus(err), setErrorStatus(err)); userErr != nil {
		return userErr
	}
	switch {
	case errors.As(err, &invalid):
		return faultsStatus(faultsOf(invalid.Faults))
	case errors.As(err, &unsupported), errors.As(err, &scheduled), errors.As(err, &asked):
		return status.Error(codes.Unimplemented, err.Error())
	case errors.As(err, &taken):
		return failureStatus(codes.AlreadyExists, err.Error(), &baiv1.RunFailure{RunId: taken.Run, Reason: "AlreadyExists"})
	case errors.As(err, &full):
		return status.Error(codes.ResourceExhausted, full.Error())
	case errors.As(err, &unavailable) && unavailable.Run != "":
		return failureStatus(codes.Unavailable, err.Error(), &baiv1.RunFailure{RunId: unavailable.Run, Reason: "NotPublished"})
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, store.ErrCursor):
		return invalidArgument("cursor", "is not one that this server gave for this request", "leave it empty to begin anew")
	}
	return status.Error(codes.Unavailable, err.Error())
}

// userErrorStatus returns the status of an error about a descriptor or file that the
// user must change, or nil for another error.
func userErrorStatus(err error) error {
	var (
		ref     *catalog.RefError
		missing *catalog.MissingError
		source  *catalog.SourceError
		name    *artifact.NameError
		digest  *bundle.DigestError
		limit   *bundle.LimitError
		body    *bundle.BodyError
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
		return invalidArgument("name", name.Reason, "give a name as ListArtifacts does")
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

// archiveErrorStatus returns the status of an error of an export or import, or nil for
// another error.
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

// scheduleErrorStatus returns the status of an error about a schedule, or nil for
// another error.
func scheduleErrorStatus(err error) error {
	var (
		missing    *schedule.MissingError
		active     *schedule.ActiveRunError
		unrunnable *schedule.UnrunnableError
		span       *schedule.SpanError
	)
	switch {
	case errors.As(err, &missing) && missing.Ref == "":
		return invalidArgument("schedule", "is empty", "give the ID or the name of a schedule")
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &active):
		return status.Error(codes.FailedPrecondition, active.Error())
	case errors.As(err, &unrunnable):
		return status.Error(codes.FailedPrecondition, unrunnable.Error())
	case errors.As(err, &span):
		return invalidArgument("from", span.Message, span.Remedy)
	}
	return nil
}

// setErrorStatus returns the status of an error about a set, or nil for another error.
func setErrorStatus(err error) error {
	var (
		missing *set.MissingError
		state   *set.StateError
		token   *set.TokenError
		size    *set.SizeError
	)
	switch {
	case errors.As(err, &missing) && missing.Ref == "":
		return invalidArgument("set", "is empty", "give the ID or the name of a set")
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Error())
	case errors.As(err, &token):
		return invalidPageToken(" for this set")
	case errors.As(err, &size):
		return invalidArgument("metrics", size.Error(), "name fewer metrics")
	}
	return nil
}

// faultsStatus refuses a request because of its faults. The text has the first fault,
// for clients that do not read details.
func faultsStatus(faults []*baiv1.Fault) error {
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
	return statusWithDetails(codes.InvalidArgument, text, details...)
}

// invalidArgument refuses a request because of one of its fields.
func invalidArgument(field, message, remedy string) error {
	return faultsStatus([]*baiv1.Fault{{Path: field, Code: codeRequest, Message: message, Remedy: remedy}})
}

// codeRequest is the code of a fault in any request other than SubmitRun.
const codeRequest = "BAI9000"

func failureStatus(code codes.Code, text string, f *baiv1.RunFailure) error {
	return statusWithDetails(code, text, protoadapt.MessageV1Of(f))
}

func statusWithDetails(code codes.Code, text string, details ...protoadapt.MessageV1) error {
	s := status.New(code, text)
	full, err := s.WithDetails(details...)
	if err != nil {
		return s.Err()
	}
	return full.Err()
}

func notFound(subject string) error { return status.Error(codes.NotFound, subject+" does not exist") }
