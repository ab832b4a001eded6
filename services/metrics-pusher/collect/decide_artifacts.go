package collect

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// maxNotices is how many words about artifacts a user is told.
const maxNotices = 20

// artifactsTime is how much of the time to stop in is for artifacts: all of it
// but what the ends of the sources need.
func artifactsTime(drain time.Duration) time.Duration {
	return max(drain-5*time.Second, drain/2)
}

// backoff is how long to wait after so many tries, from 0.
func backoff(tries int) time.Duration { return 100 * time.Millisecond << min(tries, 6) }

// Answers of a gateway.
const (
	unauthorized    = 401
	forbidden       = 403
	notFound        = 404
	requestTimeout  = 408
	tooLarge        = 413
	tooManyRequests = 429
)

// checkResponse says what the gateway's answer to a file means, and whether the same may
// be answered otherwise soon.
func checkResponse(status int, words string) (retry bool, err error) {
	var problem struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(words), &problem) == nil && problem.Message != "" {
		words = problem.Message
	}
	words = extract.Truncate(words, maxProblem)
	message := fmt.Sprintf("the gateway answered %d", status)
	if words != "" {
		message += ": " + words
	}
	switch {
	case status >= 200 && status < 300:
		return false, nil
	case status == tooLarge:
		return false, errors.New("it is larger than the gateway takes: " + words)
	case status == unauthorized, status == forbidden, status == notFound:
		return false, fmt.Errorf("%w: %s", errUploadsRefused, message)
	case status >= 500, status == tooManyRequests, status == requestTimeout:
		return true, errors.New(message)
	}
	return false, errors.New(message)
}

// volumeOf is the volume that an artifact lies on, of those that are seen; none for
// one that lies elsewhere.
func volumeOf(file string, volumes []string) (on string) {
	file = path.Clean(file)
	for _, v := range volumes {
		if (file == v || strings.HasPrefix(file, v+"/")) && len(v) > len(on) {
			on = v
		}
	}
	return on
}

// moreNotKept says that so many more files are not kept.
func moreNotKept(more int) string {
	if more == 1 {
		return "1 more file is not kept"
	}
	return fmt.Sprintf("%d more files are not kept", more)
}

// lostArtifact says why an artifact is not kept that went with its container.
func lostArtifact(path string) string {
	return fmt.Sprintf("artifact %q is not kept: the benchmark's container was ended before it could be copied, as when its memory ran out, "+
		"or runs the image's own entrypoint; what lies on a volume ([[volumes]]) is kept then, too", path)
}
