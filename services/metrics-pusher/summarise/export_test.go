package summarise

import "github.com/benchmark-ai/bai/services/internal/store"

// Summary returns what values come to.
func Summary(values []float64) store.Summary { return summary(values) }

// Ranks returns the ranks of an interval.
func Ranks(n int) (low, high int, covered float64) { return ranks(n) }
