package summarise

import "github.com/benchmark-ai/bai/services/internal/service"

// Reindex returns the part of the service that stores points of earlier runs, without the delay at its beginning.
func Reindex(d Deps) service.Runnable {
	r := newReindexer(d)
	r.delay = 0
	return r.run
}

// ReindexPage is how many runs are looked at between two writes of the progress.
const ReindexPage = reindexPage
