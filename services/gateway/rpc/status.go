package rpc

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// FaultsStatus refuses a request because of its faults. The text has the first fault,
// for clients that do not read details.
func FaultsStatus(faults []*baiv1.Fault) error {
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

// InvalidArgument refuses a request because of one of its fields.
func InvalidArgument(field, message, remedy string) error {
	return FaultsStatus([]*baiv1.Fault{{Path: field, Code: CodeRequest, Message: message, Remedy: remedy}})
}

// CodeRequest is the code of a fault in any request other than SubmitRun.
const CodeRequest = "BAI9000"

// FailureStatus returns a status with the failure of a run as its detail.
func FailureStatus(code codes.Code, text string, f *baiv1.RunFailure) error {
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

// NotFound refuses a request about something that does not exist.
func NotFound(subject string) error { return status.Error(codes.NotFound, subject+" does not exist") }
