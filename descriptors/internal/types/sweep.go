package types

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// MaxActiveRuns is how many runs of a set are active at most.
const MaxActiveRuns = 200

const (
	maxRepetitions = 10_000
	maxParallel    = 100_000
	maxSeed        = 1<<63 - 1
	minStopMax     = 6 // with fewer values a median has no interval

	parameterPattern = `[A-Za-z_][A-Za-z0-9_]*` // the names that IsParameter takes
)

// sweeps are the types of the table sweep.
func sweeps() decode.ValueTypes {
	return decode.ValueTypes{
		"repetitions":      between(1, maxRepetitions),
		"warm-up runs":     between(0, maxRepetitions),
		"parallel runs":    {Type: "integer", Rule: fmt.Sprintf("from 0 to %d", maxParallel), Read: parallelRuns},
		"seed":             between(-maxSeed-1, maxSeed),
		"percentage":       text("a percentage above 0, at most 1000: `2%`, `0.5%`", percentage),
		"most repetitions": between(minStopMax, maxRepetitions),
		"axes": {
			Type: "table of lists", Read: axes,
			Rule: "a list of one value or more for each name, which is a parameter or, in quotes, the path of a key",
		},
		"rows": {
			Type: "list of tables of any", Read: rows,
			Rule: "one row or more; each name is a parameter or, in quotes, the path of a key",
		},
	}
}

// parallelRuns is how many runs of a set are active.
func parallelRuns(v decode.Value) any {
	n, ok := v.Int(0, maxParallel)
	if !ok {
		return nil
	}
	if n > MaxActiveRuns {
		v.Warn(fault.ManyParallel, fmt.Sprintf("%d is more than %d, and a set has no more active runs", n, MaxActiveRuns),
			fmt.Sprintf("write %d or less", MaxActiveRuns))
	}
	return n
}

// percentage is the share that a percentage stands for: 0.02 for 2%.
func percentage(v decode.Value, s string) any {
	number, found := strings.CutSuffix(s, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !found || !isPercentage(number) || err != nil || n <= 0 || n > 1000 {
		v.Fault(fault.BadStopWhen, fmt.Sprintf("%q is not a percentage above 0", s), "write it as \"2%\", at most \"1000%\"")
		return nil
	}
	return n / 100
}

// isPercentage reports whether a number has digits and a point only.
func isPercentage(number string) bool { return strings.Trim(number, "0123456789.") == "" }

// axes are the values of each name.
func axes(v decode.Value) any {
	all := map[string][]any{}
	for key, list := range v.Entries("a table of lists") {
		switch {
		case !isVaried(key):
		case isHeaded(list):
		case list.Kind != syntax.List:
			list.WrongType("a list of values")
		case len(list.Node.Items) == 0:
			list.Fault(fault.BadSweep, "is empty", "write one value or more, or leave the list out")
		default:
			for _, item := range list.Node.Items {
				all[key.Text] = append(all[key.Text], item.Plain())
			}
		}
	}
	return all
}

// rows are the values of each row by their names.
func rows(v decode.Value) any {
	var all []map[string]any
	for _, item := range v.Items("a list of tables") {
		row := map[string]any{}
		for key, value := range item.Entries(syntax.Table.String()) {
			if isVaried(key) && !isHeaded(value) {
				row[key.Text] = value.Plain()
			}
		}
		all = append(all, row)
	}
	if v.Kind == syntax.List && len(v.Node.Items) == 0 {
		v.Fault(fault.BadSweep, "is empty", "write one row or more, or leave the list out")
		return nil
	}
	return all
}

// isHeaded reports whether v is made by headers or dotted keys, and then reports it.
func isHeaded(v decode.Value) bool {
	if v.Span != (syntax.Span{}) {
		return false
	}
	name := v.Path[strings.LastIndexByte(v.Path, '.')+1:]
	v.Fault(fault.BadSweep, "is a table where a value belongs",
		fmt.Sprintf(`put the path of a key into quotes, as "%s.key" = …; write a table as { key = value }`, strings.Trim(name, `"`)))
	return true
}

// isVaried reports whether a sweep can vary what key names, and else reports it.
func isVaried(key decode.Value) bool {
	if !strings.Contains(key.Text, ".") {
		if !IsParameter(key.Text) {
			key.Fault(fault.BadSweep, fmt.Sprintf("%q is not the name of a parameter", key.Text),
				"write letters, digits and _, no digit first; the path of a key has a dot")
			return false
		}
		return true
	}
	path, err := edit.ReadPath(key.Text)
	if err != nil {
		key.Fault(fault.BadSweep, fmt.Sprintf("%q is not the path of a key", key.Text),
			"write it as baictl's --set takes it, as hardware.cpus")
		return false
	}
	names := make([]string, len(path))
	for i, step := range path {
		names[i] = step.Name
	}
	if IsFixed(names) {
		key.Fault(fault.NotVaried, "is the same in every run of a set", "leave it out of [sweep]")
		return false
	}
	return true
}

// IsParameter reports whether name can be that of a parameter of a sweep.
func IsParameter(name string) bool { return name != "" && LeadingParameter(name) == name }

// LeadingParameter is the name of a parameter with which s begins, and "" for none.
func LeadingParameter(s string) string {
	n := 0
	for n < len(s) && (s[n] == '_' || isAlnum(s[n])) && (n > 0 || !isDigit(s[n])) {
		n++
	}
	return s[:n]
}

// IsFixed reports whether the key at path is the same in all cells of a sweep.
func IsFixed(path []string) bool {
	switch path[0] {
	case "spec_version", "schedule", "sweep", "alarms":
		return true
	case "info":
		return len(path) > 1 && slices.Contains([]string{"scheduling", "timezone"}, path[1])
	}
	return false
}
