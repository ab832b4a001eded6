package descriptors

import "github.com/benchmark-ai/bai/descriptors/internal/types"

// ReservedLabel reports whether the platform gives a label of that key itself,
// so that neither a descriptor nor who submits one may give it.
func ReservedLabel(key string) bool { return types.IsReserved(key) }
