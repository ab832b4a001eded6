package api

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
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
		forgotten   *submit.ForgottenError
		full        *submit.StorageFullError
		unavailable *submit.UnavailableError
	)
	if userErr := cmp.Or(userErrorStatus(err), archiveErrorStatus(err), scheduleErrorStatus(err), setErrorStatus(err),
		analysisErrorStatus(err), alarmErrorStatus(err)); userErr != nil {
		return userErr
	}
	switch {
	case errors.As(err, &invalid):
		return rpc.FaultsStatus(faultsOf(invalid.Faults))
	case errors.As(err, &unsupported), errors.As(err, &scheduled), errors.As(err, &asked):
		return status.Error(codes.Unimplemented, err.Error())
	case errors.As(err, &taken):
		return rpc.FailureStatus(codes.AlreadyExists, err.Error(), &baiv1.RunFailure{RunId: taken.Run, Reason: "AlreadyExists"})
	case errors.As(err, &forgotten):
		return rpc.FailureStatus(codes.AlreadyExists, err.Error(), &baiv1.RunFailure{RunId: forgotten.Run, Reason: "AlreadyExists"})
	case errors.As(err, &full):
		return rpc.StorageFull(full.Error())
	case errors.As(err, &unavailable) && unavailable.Run != "":
		return rpc.FailureStatus(codes.Unavailable, err.Error(), &baiv1.RunFailure{RunId: unavailable.Run, Reason: "NotPublished"})
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, store.ErrCursor):
		return rpc.InvalidArgument("cursor", "is not one that this server gave for this request", "leave it empty to begin anew")
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
		return rpc.InvalidArgument("uri", ref.Message, ref.Remedy)
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &source) && source.User:
		return rpc.InvalidArgument("uri", source.Message, "")
	case errors.As(err, &name):
		return rpc.InvalidArgument("name", name.Reason, "give a name as ListArtifacts does")
	case errors.As(err, &digest):
		return rpc.InvalidArgument("sha256", digest.Message, "")
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
		return rpc.FaultsStatus(faultsOf(submit.TruncateFaults(parser.Faults{{
			File: file.File, Line: file.Line, Column: min(file.Line, 1),
			Path: file.File, Code: rpc.CodeRequest, Message: file.Message,
		}})))
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Message)
	case errors.As(err, &exists):
		return rpc.FailureStatus(codes.AlreadyExists, exists.Error(), &baiv1.RunFailure{Reason: "AlreadyExists"})
	case errors.As(err, &inProgress):
		return status.Error(codes.Aborted, inProgress.Error())
	case errors.As(err, &changed):
		return status.Error(codes.Aborted, changed.Error())
	case errors.As(err, &stream):
		return status.Error(codes.Aborted, stream.Error())
	case errors.As(err, &limit):
		return status.Error(codes.ResourceExhausted, limit.Message)
	case errors.As(err, &full):
		return rpc.StorageFull(full.Error())
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
		return rpc.InvalidArgument("schedule", "is empty", "give the ID or the name of a schedule")
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &active):
		return status.Error(codes.FailedPrecondition, active.Error())
	case errors.As(err, &unrunnable):
		return status.Error(codes.FailedPrecondition, unrunnable.Error())
	case errors.As(err, &span):
		return rpc.InvalidArgument("from", span.Message, span.Remedy)
	}
	return nil
}

// setErrorStatus returns the status of an error about a set, or nil for another error.
func setErrorStatus(err error) error {
	var (
		missing *set.MissingError
		state   *set.StateError
		token   *results.TokenError
		size    *results.SizeError
	)
	switch {
	case errors.As(err, &missing) && missing.Ref == "":
		return rpc.InvalidArgument("set", "is empty", "give the ID or the name of a set")
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Error())
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Error())
	case errors.As(err, &token):
		return request.InvalidPageToken(" for this set")
	case errors.As(err, &size):
		return rpc.InvalidArgument("metrics", size.Error(), "name fewer metrics")
	}
	return nil
}

// analysisErrorStatus returns the status of an error of a comparison, history or baseline, or
// nil for another error.
func analysisErrorStatus(err error) error {
	var (
		operand *analysis.OperandError
		missing *analysis.MissingError
		state   *analysis.StateError
	)
	switch {
	case errors.As(err, &operand):
		return rpc.InvalidArgument(operand.Field, operand.Message, operand.Remedy)
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Message)
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Message)
	}
	return nil
}

// alarmErrorStatus returns the status of an error about an incident, a mute or a notice, or nil
// for another error.
func alarmErrorStatus(err error) error {
	var (
		field   *alarm.FieldError
		missing *alarm.MissingError
		state   *alarm.StateError
	)
	switch {
	case errors.As(err, &field):
		return rpc.InvalidArgument(field.Field, field.Message, field.Remedy)
	case errors.As(err, &missing):
		return status.Error(codes.NotFound, missing.Message)
	case errors.As(err, &state):
		return status.Error(codes.FailedPrecondition, state.Message)
	}
	return nil
}
