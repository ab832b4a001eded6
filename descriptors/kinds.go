package descriptors

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/kind"
	"github.com/benchmark-ai/bai/descriptors/internal/shape"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// kinds are those of package kind, and those that have a type of their own.
func kinds() shape.Kinds {
	all := kind.All()
	maps.Copy(all, shape.Kinds{
		"processes": {
			Type: "string or integer", Rule: "`gpus`, or a whole number from 1 on", Read: processes,
		},
		"secrets": {
			Type: "table of strings", Rule: "each value is `name/key` of a secret in the cluster", Read: secrets,
		},
	})
	return all
}

func processes(v shape.Value) any {
	if v.Kind != syntax.String && v.Kind != syntax.Integer {
		v.WrongType(`a whole number or "gpus"`)
		return nil
	}
	if v.Kind == syntax.String && v.Text == "gpus" {
		return Processes{OnePerGPU: true}
	}
	const most = 4096
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < 1 || n > most || v.Text[0] == '+' {
		v.Fault(fault.BadProcesses, fmt.Sprintf("%q is no number of processes", v.Text),
			fmt.Sprintf(`write "gpus", or a whole number from 1 to %d`, most))
		return nil
	}
	return Processes{Number: n}
}

func secrets(v shape.Value) any {
	all := map[string]SecretRef{}
	for key, value := range v.Entries("a table of strings") {
		s, ok := value.String()
		if !ok {
			continue
		}
		kind.Variable(key, value)
		name, inside, _ := strings.Cut(s, "/")
		if !kind.IsObjectName(name) || !kind.IsSecretKey(inside) {
			value.Fault(fault.BadSecret, "not the place of a secret", `write "name/key" of a secret in the cluster, never its value`)
			continue
		}
		all[key.Text] = SecretRef{name, inside}
	}
	return all
}
