package follow

import baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"

// isNotableSet reports whether a change of a set gets a lasting line: another state or
// another failure, and without a live line each run that ended.
func isNotableSet(last, now *baiv1.Set, live bool) bool {
	if last == nil || last.GetState() != now.GetState() || last.GetFailed() != now.GetFailed() {
		return true
	}
	return !live && (last.GetSucceeded() != now.GetSucceeded() || last.GetCanceled() != now.GetCanceled())
}
