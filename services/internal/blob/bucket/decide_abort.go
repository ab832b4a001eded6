package bucket

import "time"

// Of aborts of one upload.
const (
	firstAbortWait = 50 * time.Millisecond // doubled after each abort
	maxAbortWait   = time.Second
	lateParts      = 3 * time.Second // how long a part may arrive that was under way without an answer
)

// abortTry is the result of one abort of an upload.
type abortTry struct {
	Number     int           // from 1
	PartsLeft  bool          // parts are listed, or the bucket cannot list them
	Unanswered bool          // the server may still carry out requests of the upload
	Quiet      time.Duration // since the first abort, or the last after which parts were listed
}

// decideAbort says whether to abort an upload again, and how long to wait before.
func decideAbort(t abortTry) (retry bool, wait time.Duration) {
	if !t.PartsLeft && (!t.Unanswered || t.Quiet >= lateParts) {
		return false, 0
	}
	return true, min(firstAbortWait<<min(t.Number-1, 10), maxAbortWait)
}
