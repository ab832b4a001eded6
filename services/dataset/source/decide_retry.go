package source

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxRetryAfter is the maximum time that a source may ask the reader to wait.
const maxRetryAfter = 5 * time.Minute

// retryDecision is the decision after a response.
type retryDecision struct {
	usable bool          // the response has the content
	fatal  *Error        // another try would not help
	reason string        // otherwise, the reason for the next try
	wait   time.Duration // minimum wait; zero if the source gives none
}

// classifyStatus decides what to do after a response of the source name, given its
// status, the status as text, and its Retry-After header at the time now.
func classifyStatus(name string, status int, statusText, retryAfter string, now time.Time) retryDecision {
	const ok = 200
	switch {
	case status == ok:
		return retryDecision{usable: true}
	case store.RetryableStatus(status):
		wait := parseRetryAfter(retryAfter, now)
		if wait > maxRetryAfter {
			return retryDecision{fatal: failed(event.ClassInfra, "source %s answers %s and asks to come back in %s", name,
				statusText, wait.Round(time.Second))}
		}
		return retryDecision{reason: "answers " + statusText, wait: wait}
	}
	return retryDecision{fatal: failed(event.ClassUser, "source %s answers %s", name, statusText)}
}

// parseRetryAfter parses Retry-After, as seconds or a date. Any other text gives zero.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
		return time.Duration(min(max(n, 0), math.MaxInt64/int64(time.Second))) * time.Second
	}
	if t, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", s); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// backoff returns the wait after that many consecutive failures, from 1. It doubles
// each time, up to 64 times first, and is multiplied by 0.5 to 1.5, depending on random
// from 0 to 1.
func backoff(first time.Duration, failures int, random float64) time.Duration {
	wait := float64(first) * math.Pow(2, float64(min(failures-1, 6)))
	return time.Duration(wait * (0.5 + random))
}

// resumable returns the value of If-Range with which the rest of a body can be
// requested, or "" if the body must be requested from the beginning. Without a strong
// validator, there is no way to tell whether the body is still the same.
func resumable(v Validators, acceptRanges string) string {
	if strings.EqualFold(strings.TrimSpace(acceptRanges), "none") {
		return ""
	}
	if v.ETag != "" && !strings.HasPrefix(v.ETag, "W/") {
		return v.ETag
	}
	if v.ETag != "" {
		return ""
	}
	return v.Modified
}

// continues reports whether a partial response is the part from at to before end of a
// body; total is the size of the body. If the size is unknown, total and end are -1,
// and the response is the rest.
func continues(contentRange string, at, end, total int64) bool {
	rest, ok := strings.CutPrefix(contentRange, "bytes ")
	if !ok {
		return false
	}
	span, size, ok := strings.Cut(rest, "/")
	if !ok {
		return false
	}
	from, to, ok := strings.Cut(span, "-")
	if !ok || from != strconv.FormatInt(at, 10) {
		return false
	}
	if total < 0 {
		return true
	}
	return size == strconv.FormatInt(total, 10) && to == strconv.FormatInt(end-1, 10)
}

func failed(class event.Class, format string, args ...any) *Error {
	return &Error{Reason: event.FetchFailed, Class: class, Message: fmt.Sprintf(format, args...)}
}

func tooLarge(name string, limit int64) *Error {
	return &Error{
		Reason: event.DataTooLarge, Class: event.ClassUser,
		Message: fmt.Sprintf("source %s has more than the %d bytes that the platform's settings allow (sources.max_size)", name, limit),
	}
}

func tooMany(name string, limit int) *Error {
	return &Error{
		Reason: event.DataTooLarge, Class: event.ClassUser,
		Message: fmt.Sprintf("source %s has more than the %d files that the platform's settings allow (sources.max_files)", name, limit),
	}
}

func unreadablyLarge(name string, err error) *Error {
	return &Error{
		Reason: event.DataTooLarge, Class: event.ClassUser,
		Message: fmt.Sprintf("source %s cannot be read: %v", name, err),
	}
}
