package types

import (
	"fmt"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// steps are the types of the table steps.
func steps() decode.ValueTypes {
	return decode.ValueTypes{
		"step":  text("1 to 20 lower-case letters, digits and `-`, the first and last no `-`", step),
		"steps": {Type: "list of strings", Rule: "names of steps", Read: func(v decode.Value) any { return nameList(v, step) }},
	}
}

func step(v decode.Value, s string) any {
	if !isShortName(s) {
		v.Fault(fault.BadStep, fmt.Sprintf("%q is not the name of a step", s),
			fmt.Sprintf("write lower-case letters, digits and -, %d at most", maxRole))
		return nil
	}
	return s
}
