// Package templates has descriptors to begin with, one for each kind of benchmark.
package templates

import (
	"embed"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
)

// files are those of the kinds.
//
//go:embed *.toml
var files embed.FS

// Kinds returns the kinds of descriptors that Text knows, in order.
func Kinds() []string {
	return []string{"single_node", "gpu", "mpi", "inference", "roles", "scheduled", "sweep"}
}

// Text returns a descriptor of a kind to begin with, with comments. The parser takes it
// without a warning. The kind may be an alias of a strategy (horovod,
// client_server), and is false where it is none that there is.
func Text(kind string) ([]byte, bool) {
	kind = canonical(kind)
	if !slices.Contains(Kinds(), kind) {
		return nil, false
	}
	text, err := files.ReadFile(kind + ".toml")
	return text, err == nil
}

// canonical returns the name of the strategy that kind is an alias of, else kind.
func canonical(kind string) string {
	switch kind {
	case "horovod":
		return string(descriptors.MPI)
	case "client_server":
		return string(descriptors.Inference)
	}
	return kind
}
