package collect

import "github.com/benchmark-ai/bai/services/metrics-pusher/extract"

// tailOf returns how many of the stored bytes of a log are its last ones.
func tailOf(limit int64) int64 { return extract.TailOf(limit, extract.MaxTail) }
