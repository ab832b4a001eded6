package descriptors

import (
	"embed"
	"slices"
)

// templates are the files of Templates.
//
//go:embed templates/*.toml
var templates embed.FS

// Templates are the kinds of descriptors that Template knows, in order.
func Templates() []string {
	return []string{"single_node", "gpu", "mpi", "inference", "roles", "scheduled", "sweep"}
}

// Template is a descriptor of a kind to begin with, with comments. The parser takes it
// without a warning. The kind may be an alias of a strategy (horovod,
// client_server), and is false where it is none that there is.
func Template(kind string) ([]byte, bool) {
	kind = canonical(kind)
	if !slices.Contains(Templates(), kind) {
		return nil, false
	}
	text, err := templates.ReadFile("templates/" + kind + ".toml")
	return text, err == nil
}

// canonical is the name of the strategy that kind is an alias of, else kind.
func canonical(kind string) string {
	switch kind {
	case "horovod":
		return string(MPI)
	case "client_server":
		return string(Inference)
	}
	return kind
}
