package download

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// classifyError returns the failure of a source whose download ended with err, after
// done bytes of total (-1: unknown), given the space of the object store. It returns
// nil if the source is not to blame and the download is to be repeated. A source is to
// blame if it is larger than an empty store, or if it has no known size and fills the
// store, since it would fill the store again.
func classifyError(s dataset.Source, err error, done, total int64, space store.Space) *dataset.Failure {
	if own, ok := errors.AsType[*source.Error](err); ok {
		return new(dataset.Failure{Reason: own.Reason, Class: own.Class, Message: own.Message}.Truncated())
	}
	name := source.Redact(s.URL)
	switch {
	case !IsNoSpace(err):
	case total < 0 && done >= dataset.MaxUnsized:
		return tooLarge(fmt.Sprintf("source %s does not say how much it has, and had filled the object store after %s", name,
			dataset.Size(done)))
	case space.Total >= 0 && total > space.Total:
		return tooLarge(fmt.Sprintf("source %s has %s, and the object store has room for %s even when it is empty: use less of it, or have the object store moved to a larger disk (objects.url)", name, dataset.Size(total), dataset.Size(space.Total)))
	}
	return nil
}

func tooLarge(message string) *dataset.Failure {
	return &dataset.Failure{Reason: event.DataTooLarge, Class: event.ClassUser, Message: message}
}

// IsNoSpace reports whether a download ended because the object store was full.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
