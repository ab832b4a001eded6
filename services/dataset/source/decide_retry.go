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

// maxRetryAfter is how long a source may ask its reader to wait.
const maxRetryAfter = 5 * time.Minute

// retryDecision is what follows from an answer.
type retryDecision struct {
	usable bool          // its body is what is wanted
	fatal  *Error        // asking again would not help
	reason string        // otherwise: why it is asked again
	wait   time.Duration // at least so long; zero where the source does not say
}

// classifyStatus says what follows from an answer of the source name: its status, in
// words said, and its Retry-After, at the time now.
func classifyStatus(name string, status int, statusText, retryAfter string, now time.Time) retryDecision {
	const ok = 200
	switch {
	case status == ok:
		return retryDecision{usable: true}
	case store.RetryableStatus(status):
		wait := parseRetryAfter(retryAfter, now)
		if wait > maxRetryAfter {
			return retryDecision{fatal: failed(event.ClassInfra, "source %s answers %s and asks to come back in %s", name, statusText, wait.Round(time.Second))}
		}
		return retryDecision{reason: "answers " + statusText, wait: wait}
	}
	return retryDecision{fatal: failed(event.ClassUser, "source %s answers %s", name, statusText)}
}

// parseRetryAfter reads Retry-After, seconds or a date. What is neither is zero.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
		return time.Duration(min(max(n, 0), math.MaxInt64/int64(time.Second))) * time.Second
	}
	if t, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", s); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// backoff returns how long to wait after so many failures in a row, from 1:
// doubled each time, up to 64 times first, and anything between half of that
// and one and a half, as random from 0 to 1 tells.
func backoff(first time.Duration, failures int, random float64) time.Duration {
	wait := float64(first) * math.Pow(2, float64(min(failures-1, 6)))
	return time.Duration(wait * (0.5 + random))
}

// resumable says how to ask for the rest of a body of which some was read: the
// value of If-Range, "" if it must be asked for from the beginning. Without a
// strong validator nobody can tell that it still is the same body.
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

// continues reports whether a partial answer is what lies from at on and before
// end in a body. Total is the size of the body; where that is not known, it and
// end are -1, and the answer is the rest.
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
	return &Error{Reason: event.DataTooLarge, Class: event.ClassUser, Message: fmt.Sprintf("source %s has more than the %d bytes that the platform's settings allow (sources.max_size)", name, limit)}
}

func tooMany(name string, limit int) *Error {
	return &Error{Reason: event.DataTooLarge, Class: event.ClassUser, Message: fmt.Sprintf("source %s has more than the %d files that the platform's settings allow (sources.max_files)", name, limit)}
}
