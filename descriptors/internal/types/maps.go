package types

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

func tables() decode.ValueTypes {
	const stringTable = "table of strings"
	return decode.ValueTypes{
		"labels": {
			Type: stringTable,
			Rule: "keys and values of 1 to 63 letters, digits, `-`, `_` and `.`, the first and last a letter or digit; a value may be empty; names of our own labels are taken",
			Read: func(v decode.Value) any { return table(v, label) },
		},
		"node labels": {
			Type: stringTable, Rule: "labels of nodes, as `node.kubernetes.io/instance-type`",
			Read: func(v decode.Value) any { return table(v, nodeLabel) },
		},
		"columns": {
			Type: stringTable, Rule: "names of 1 to 63 lower-case letters, digits and `_`, the first no digit",
			Read: func(v decode.Value) any { return table(v, column) },
		},
		"metric paths": {
			Type: stringTable, Rule: "names of metrics, each with a path or a column",
			Read: func(v decode.Value) any { return table(v, metricPath) },
		},
		"variables": {
			Type: stringTable, Rule: "names of letters, digits, `_`, `-` and `.`, the first no digit",
			Read: func(v decode.Value) any { return table(v, Variable) },
		},
	}
}

// table reads a table of strings; check reports the faults of an entry.
func table(v decode.Value, check func(key, value decode.Value)) any {
	entries := map[string]string{}
	for key, value := range v.Entries("a table of strings") {
		s, ok := value.String()
		if !ok {
			continue
		}
		check(key, value)
		entries[key.Text] = s
	}
	return entries
}

func label(key, value decode.Value) {
	if !isLabel(key.Text) {
		key.Fault(fault.BadLabel, "the key "+nameProblem(key.Text), "begin and end with a letter or digit; between them also - _ and .")
	}
	if s := value.Text; s != "" && !isLabel(s) {
		value.Fault(fault.BadLabel, "the value "+nameProblem(s), "begin and end with a letter or digit; between them also - _ and .")
	}
	if IsReserved(key.Text) {
		key.Fault(fault.ReservedLabel, "would hide a label of the platform", "choose another name")
	}
}

// Reserved are the labels that a descriptor may not give, beside all that begin
// with bai: the platform says them of each run, pod and sample.
func Reserved() []string {
	return []string{
		"run", "set", "cell", "repetition", "warmup", "schedule", "firing", "attempt",
		"namespace", "owner", "role", "index", "pod", "container", "stream",
		"app", "action-id", "client-id", "parent-action-id", "created-by", "inference-server-name",
		"job-name", "controller-uid",
	}
}

// IsReserved reports whether the platform has a label called key.
func IsReserved(key string) bool {
	key = strings.ToLower(key)
	rest, ours := strings.CutPrefix(key, "bai")
	return ours && (rest == "" || strings.ContainsRune("-_.", rune(rest[0]))) || slices.Contains(Reserved(), key)
}

func nodeLabel(key, value decode.Value) {
	if !isQualified(key.Text) {
		key.Fault(fault.BadLabel, fmt.Sprintf("%q is not the key of a label", key.Text), "write name or domain/name")
	}
	if s := value.Text; s != "" && !isLabel(s) {
		value.Fault(fault.BadLabel, "the value "+nameProblem(s), "")
	}
}

// Variable reports a fault in the name of an environment variable.
func Variable(key, _ decode.Value) {
	if !isVariable(key.Text) {
		key.Fault(fault.BadVariable, fmt.Sprintf("%q is not the name of a variable", key.Text),
			"write letters, digits and _, no digit first")
	}
}

// column reports a fault in the name of a column.
func column(key, _ decode.Value) {
	name := key.Text
	if name == "" || len(name) > longest || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" ||
		name[0] >= '0' && name[0] <= '9' {
		key.Fault(fault.BadColumn, fmt.Sprintf("%q is not the name of a column", name),
			"write lower-case letters, digits and _, no digit first")
	}
}

// metricPath reports faults in the name of a metric, and in the path of its number.
func metricPath(key, value decode.Value) {
	if name := key.Text; strings.TrimSpace(name) != name || name == "" || len([]rune(name)) > longestMetric ||
		len(name) > mostMetricBytes || strings.ContainsFunc(name, unicode.IsControl) {
		key.Fault(fault.BadText, fmt.Sprintf("%q is not the name of a metric", name),
			fmt.Sprintf("write one line of 1 to %d characters, %d bytes at most", longestMetric, mostMetricBytes))
	}
	if strings.TrimSpace(value.Text) == "" {
		value.Fault(fault.BadText, "is empty", "write the path of the number, as results.rate, or its column")
	}
}
