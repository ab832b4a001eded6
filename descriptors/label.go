package descriptors

import "github.com/benchmark-ai/bai/descriptors/internal/types"

// ReservedLabel reports whether the platform itself sets a label of that key, so that
// neither descriptors nor submissions may set it.
func ReservedLabel(key string) bool { return types.IsReserved(key) }
