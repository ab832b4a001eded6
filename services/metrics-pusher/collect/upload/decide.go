package upload

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// maxNotices is how many notices about artifacts a user gets.
const maxNotices = 20

// Answers of a gateway.
const (
	unauthorized    = 401
	forbidden       = 403
	notFound        = 404
	requestTimeout  = 408
	tooLarge        = 413
	tooManyRequests = 429
)

// checkResponse returns the error in the gateway's answer to a file, and whether a retry may succeed.
func checkResponse(status int, words string) (retry bool, err error) {
	var problem struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(words), &problem) == nil && problem.Message != "" {
		words = problem.Message
	}
	words = extract.Truncate(words, 300)
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

// volumeOf returns the volume of a file among those that the collector has, empty if the file is on none of them.
func volumeOf(file string, volumes []string) (on string) {
	file = path.Clean(file)
	for _, v := range volumes {
		if (file == v || strings.HasPrefix(file, v+"/")) && len(v) > len(on) {
			on = v
		}
	}
	return on
}

// moreNotKept is the notice about the files that have no notice of their own.
func moreNotKept(more int) string {
	if more == 1 {
		return "1 more file is not kept"
	}
	return fmt.Sprintf("%d more files are not kept", more)
}

// lostArtifact is the notice about an artifact that was lost with its container.
func lostArtifact(path string) string {
	return fmt.Sprintf("artifact %q is not kept: the benchmark's container was ended before it could be copied, as when its memory ran out, "+
		"or runs the image's own entrypoint; what lies on a volume ([[volumes]]) is kept then, too", path)
}
