package bai

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A NotFoundError says that there is no such run, descriptor or file.
type NotFoundError struct {
	Message string // the platform's words
	What    string // "descriptor", "artifact", "data", "schedule", "set", "task", "baseline", "operand" or "incident"; empty for a run
}

// Error is the platform's message.
func (e *NotFoundError) Error() string { return e.Message }

// An InvalidError is a request that the platform refuses and that will be refused again.
type InvalidError struct {
	Message string         // the platform's words
	Faults  []*baiv1.Fault // of the descriptor, in order of place; may be empty
}

// Error is the platform's message, without the faults.
func (e *InvalidError) Error() string { return e.Message }

// An ExistsError says that the name is taken, or that the idempotency key was
// used for something else.
type ExistsError struct {
	RunID   string // of the run that is in the way, where the platform says so
	Reason  string // one CamelCase word, where the platform says so
	Message string // the platform's words
}

// Error is the platform's message.
func (e *ExistsError) Error() string { return e.Message }

// An UnavailableError says that the platform could not be reached or could not
// do its work, and that it may work later.
type UnavailableError struct {
	Target  string // the platform's address
	RunID   string // after Submit: the run that may still be run
	Key     string // after Submit: the key under which it is the same run
	Reason  string // one CamelCase word, where the platform says so
	Away    bool   // there was no connection
	Message string // why

	RetryAfter time.Duration // the platform is up and at a limit: it takes the request after this time; else 0
}

// Error says which platform, and why.
func (e *UnavailableError) Error() string {
	if e.RetryAfter > 0 {
		return e.Message // which names the limit
	}
	if e.Away {
		return fmt.Sprintf("the platform at %s cannot be reached: %s", e.Target, e.Message)
	}
	return fmt.Sprintf("the platform at %s is not available: %s", e.Target, e.Message)
}

// An UnsupportedError is a request that the platform does not know: the platform is older
// than the client, or smaller.
type UnsupportedError struct {
	Message string // the platform's words
}

// Error is the platform's message.
func (e *UnsupportedError) Error() string { return e.Message }

// A ServerError is any other failure of the platform.
type ServerError struct {
	Code    codes.Code
	Message string // the platform's words
}

// Error is the platform's message or, without one, the kind of failure.
func (e *ServerError) Error() string {
	if e.Code == codes.ResourceExhausted {
		return e.Message // which names the exhausted resource
	}
	return fmt.Sprintf("the platform failed (%s): %s", e.Code, e.Message)
}

// withNotFoundKind adds the kind of the missing thing to err.
func withNotFoundKind(kind string, err error) error {
	if e, ok := errors.AsType[*NotFoundError](err); ok {
		e.What = kind
	}
	return err
}

// toClientError converts a gRPC error to one of the errors of this package, or to that of
// ctx if ctx is done.
func toClientError(ctx context.Context, target string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	return fromStatus(target, s)
}

func fromStatus(target string, s *status.Status) error {
	if isWeb(s) {
		return &UnavailableError{Target: target, Away: true, Message: notPlatform}
	}
	if after := retryAfter(s); s.Code() == codes.ResourceExhausted && after > 0 {
		return &UnavailableError{Target: target, Reason: "ResourceExhausted", Message: s.Message(), RetryAfter: after}
	}
	faults, failure := details(s)
	switch s.Code() { //nolint:exhaustive // every other code is the platform's failure
	case codes.NotFound:
		return &NotFoundError{Message: s.Message()}
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated:
		return &InvalidError{Message: s.Message(), Faults: faults}
	case codes.AlreadyExists:
		return &ExistsError{RunID: failure.GetRunId(), Reason: failure.GetReason(), Message: s.Message()}
	case codes.Unimplemented:
		return &UnsupportedError{Message: unsupported(target, s.Message())}
	case codes.Unavailable, codes.Aborted, codes.Canceled, codes.DeadlineExceeded:
		message, away := lostConnection(s.Message())
		return &UnavailableError{Target: target, RunID: failure.GetRunId(), Reason: failure.GetReason(), Away: away, Message: message}
	default:
		return &ServerError{Code: s.Code(), Message: s.Message()}
	}
}

// unsupported rewords gRPC's message about an unknown method, and keeps a message of the
// platform.
func unsupported(target, message string) string {
	name, ok := strings.CutPrefix(message, "unknown method ")
	if !ok {
		name, ok = strings.CutPrefix(message, "unknown service bai.v1.")
	}
	if !ok {
		return message
	}
	name, _, _ = strings.Cut(name, " ")
	return fmt.Sprintf("the platform at %s is older than this client: it has no %s", target, name)
}

// retryAfter returns the time after which the platform asks to try again, or 0.
func retryAfter(s *status.Status) time.Duration {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func details(s *status.Status) (faults []*baiv1.Fault, failure *baiv1.RunFailure) {
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *baiv1.Fault:
			faults = append(faults, d)
		case *baiv1.RunFailure:
			failure = d
		}
	}
	return faults, failure
}

// lostConnection tells gRPC's messages about a connection from those of a server, and
// shortens them.
func lostConnection(message string) (cause string, away bool) {
	signs := []string{
		"connection error: ", "keepalive ping failed", "name resolver error", "error reading from server",
		"last connection error", "transport is closing",
	}
	if !slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(message, sign) }) {
		return message, false
	}
	switch {
	case strings.Contains(message, "keepalive ping failed"):
		return "it answers no more", true
	case strings.Contains(message, "zero addresses"):
		return "its name is not known", true
	case strings.Contains(message, "frame too large"):
		return notPlatform, true
	case strings.Contains(message, "server preface") && strings.Contains(message, "closed network connection"):
		return "it takes connections and does not answer", true
	}
	cause = message[strings.LastIndex(message, ": ")+1:]
	return strings.Trim(cause, ` "`), true
}

const notPlatform = "what answers there is not a platform"

// isWeb says whether a status is gRPC's complaint about an answer that is
// another web server's.
func isWeb(s *status.Status) bool {
	return strings.HasPrefix(s.Message(), "unexpected HTTP status code") || strings.Contains(s.Message(), "malformed header: ")
}
