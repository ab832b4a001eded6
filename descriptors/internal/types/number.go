package types

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/quantity"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

const (
	maxPort    = 65535
	maxSeconds = 1 << 30
	maxGPUs    = 1024
	maxRetries = 10
	maxHistory = 1000
	maxBlock   = 100_000
	maxDevices = 1024

	// A port below it needs privileges.
	minHighPort = 1024

	// RFC 791 asks every host to take packets of 576 bytes; the length of a packet has 16 bits.
	minMTU = 576
	maxMTU = 65535
)

func numbers() decode.ValueTypes {
	return decode.ValueTypes{
		"gpus":    between(0, maxGPUs),
		"seconds": between(0, maxSeconds),
		"count":   between(1, maxSeconds),
		"port":    between(1, maxPort),
		"devices": between(1, maxDevices),
		"mtu":     between(minMTU, maxMTU),
		"retries": between(0, maxRetries),
		"history": between(1, maxHistory),

		"high port":   between(minHighPort, maxPort),
		"block lines": between(1, maxBlock),
		"switch": {Type: "bool", Read: func(v decode.Value) any {
			if b, ok := v.Bool(); ok {
				return b
			}
			return nil
		}},
		"ports": {
			Type: "list of integers", Rule: "one port or more, each from 1 to 65535, none twice", Read: ports,
		},
		"cpus": {
			Type: "string or number", Rule: "a number of CPUs, or of thousandths with an `m`: `4`, `0.5`, `500m`", Read: cpus,
		},
		"scheme": text("`http` or `https`", func(v decode.Value, s string) any {
			if lower := strings.ToLower(s); lower == "http" || lower == "https" {
				return lower
			}
			v.Fault(fault.NotOneOf, fmt.Sprintf("%q is not one of its values", s), "write http or https")
			return nil
		}),
		"memory": text("a size: `512Mi`, `16GiB`, `4G`", memory),
		"size": {
			Type: "string or integer", Rule: "a size: `10MiB`, `1.5G`; a number without unit is bytes", Read: size,
		},
	}
}

func between(low, high int64) decode.ValueType {
	return decode.ValueType{Type: "integer", Rule: fmt.Sprintf("from %d to %d", low, high), Read: func(v decode.Value) any {
		if n, ok := v.Int(low, high); ok {
			return n
		}
		return nil
	}}
}

func ports(v decode.Value) any {
	numbers := []int{}
	for _, item := range v.Items("a list of whole numbers") {
		port, ok := item.Int(1, maxPort)
		switch {
		case ok && slices.Contains(numbers, int(port)):
			item.Fault(fault.BadPorts, fmt.Sprintf("%d is there twice", port), "keep one of the two")
		case ok:
			numbers = append(numbers, int(port))
		}
	}
	if v.Kind == syntax.List && len(v.Node.Items) == 0 {
		v.Fault(fault.BadPorts, "is empty", "name the port on which the server listens: ports = [8080]")
		return nil
	}
	return numbers
}

func cpus(v decode.Value) any {
	amount := v.Text
	switch v.Kind {
	case syntax.Integer, syntax.Float:
	case syntax.String:
		s, ok := v.String()
		if !ok {
			return nil
		}
		amount = s
	case syntax.Bool, syntax.Time, syntax.List, syntax.Table:
		v.WrongType("a number of CPUs")
		return nil
	}
	if cpus, ok := readCPUs(v, amount); ok {
		return cpus
	}
	return nil
}

func memory(v decode.Value, s string) any {
	const least = 1 << 20
	bytes, err := quantity.Size(s)
	switch {
	case err != nil:
		notSize(v, s, err)
	case bytes < least:
		v.Fault(fault.BadSize, fmt.Sprintf("%q is %d bytes, too few for any program", s, bytes), `write a unit, as "16Gi"`)
	default:
		canonical, _ := quantity.Memory(s) // Size took it
		return canonical
	}
	return nil
}

func size(v decode.Value) any {
	if v.Kind == syntax.Integer {
		if n, ok := v.Int(0, 1<<62); ok {
			return n
		}
		return nil
	}
	if v.Kind != syntax.String {
		v.WrongType("a size")
		return nil
	}
	s, ok := v.String()
	if !ok {
		return nil
	}
	bytes, err := quantity.Size(s)
	if err != nil {
		notSize(v, s, err)
		return nil
	}
	return bytes
}

func notSize(v decode.Value, s string, err error) {
	remedy := `write a number and a unit, as "10MiB"`
	switch {
	case errors.Is(err, quantity.ErrUnit):
		remedy = "units are k, M, G, T and P, and Ki, Mi, Gi, Ti and Pi"
	case errors.Is(err, quantity.ErrTooLarge):
		remedy = ""
	}
	v.Fault(fault.BadSize, fmt.Sprintf("%q is not a size: %v", s, err), remedy)
}
