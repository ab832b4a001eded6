package types

import (
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/price"
)

const maxPer = 10 // metrics that cost and energy are divided by

// costs are the types of prices, and of the table cost.
func costs() decode.ValueTypes {
	return decode.ValueTypes{
		"price": {Type: "string", Rule: "an amount of 0 or more, and the code of a currency: `3.06 USD`", Read: readPrice},
		"cost metrics": {
			Type: "list of strings", Rule: fmt.Sprintf("1 to %d names of metrics, none twice", maxPer), Read: costMetrics,
		},
	}
}

// readPrice is the text of a price without needless zeros.
func readPrice(v decode.Value) any {
	if v.Kind == syntax.Integer || v.Kind == syntax.Float {
		v.Fault(fault.NoCurrency, fmt.Sprintf("%s has no currency", v.Text),
			fmt.Sprintf("write it as \"%s USD\", with the currency that it is in", v.Text))
		return nil
	}
	s, ok := v.String()
	if !ok {
		return nil
	}
	p, err := price.Parse(s)
	if refused, is := errors.AsType[*price.FaultError](err); is {
		v.Fault(refused.Code, refused.Message, refused.Remedy)
		return nil
	}
	return p.String()
}

func costMetrics(v decode.Value) any {
	return distinct{
		what: "a list of names of metrics", example: "a metric", code: fault.BadPer, most: maxPer,
		valid: func(item decode.Value, s string) bool {
			if s == "" {
				item.Fault(fault.BadText, "is empty", "give the name of a metric")
				return false
			}
			return metricName(item, s) != nil
		},
	}.read(v)
}
