package types

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/quantity"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

func resources() decode.ValueTypes {
	return decode.ValueTypes{
		"resources": {
			Type: "table of amounts",
			Rule: "names of resources, 64 at most, each with an amount: a whole number of an extended resource (`intel.com/sriov`), a size of `memory`, `ephemeral-storage` or `hugepages-2Mi`, a number of `cpu`",
			Read: readResources,
		},
		"attachment": text("the name of a network of Multus, as `name` or `namespace/name`", func(v decode.Value, s string) any {
			namespace, name, both := strings.Cut(s, "/")
			if !both {
				namespace, name = "default", s
			}
			if !IsObjectName(name) || !IsObjectName(namespace) || strings.Contains(namespace, ".") || len(namespace) > longest {
				v.Fault(fault.BadName, fmt.Sprintf("%q is not the name of a network", s),
					`write "name" or "namespace/name": lower-case letters, digits and -`)
				return nil
			}
			return s
		}),
	}
}

// maxResources is how many resources of a container a table can have.
const maxResources = 64

// readResources returns the amounts of a table, as Kubernetes writes them.
func readResources(v decode.Value) any {
	if n := len(v.Node.Entries); v.Kind == syntax.Table && n > maxResources {
		v.Fault(fault.OutOfRange, fmt.Sprintf("has %d resources, %d at most are taken", n, maxResources), "")
		return nil
	}
	amounts := map[string]string{}
	for key, value := range v.Entries("a table of amounts") {
		if !isResource(key.Text) {
			key.Fault(fault.BadResource, fmt.Sprintf("%q is not the name of a resource", key.Text),
				"write it as intel.com/sriov, hugepages-2Mi, cpu, memory or ephemeral-storage")
			continue
		}
		if amount, ok := readAmount(key.Text, value); ok {
			amounts[key.Text] = amount
		}
	}
	return amounts
}

const hugepages = "hugepages-"

// isResource reports whether a container can ask for a resource of a name. The names below
// kubernetes.io are the cluster's own, and those with the prefix "requests." are of quotas.
func isResource(name string) bool {
	switch {
	case strings.Contains(name, "/"):
		return isQualified(name) && !strings.Contains(name, "kubernetes.io/") && !strings.HasPrefix(name, "requests.")
	case strings.HasPrefix(name, hugepages):
		return pageSize(name) > 0
	}
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

// pageSize returns the bytes of a page of the resource hugepages-SIZE, or 0 if SIZE is not a
// power of two as Kubernetes writes it.
func pageSize(name string) int64 {
	size := strings.TrimPrefix(name, hugepages)
	powers := []string{"1", "2", "4", "8", "16", "32", "64", "128", "256", "512"}
	for _, unit := range []string{"Ki", "Mi", "Gi"} {
		if number, ok := strings.CutSuffix(size, unit); ok && slices.Contains(powers, number) {
			bytes, _ := quantity.Size(size) // it is a size
			return bytes
		}
	}
	return 0
}

// readAmount reads the amount of a resource.
func readAmount(name string, v decode.Value) (string, bool) {
	amount, ok := amountText(v)
	switch {
	case !ok:
		return "", false
	case strings.HasPrefix(amount, "-"):
		v.Fault(fault.BadSize, fmt.Sprintf("%s is less than 0", amount), "write 0 or more")
		return "", false
	case name == "cpu":
		return readCPUs(v, amount)
	case strings.Contains(name, "/"):
		return readCount(v, amount)
	}
	return readBytes(name, v, amount)
}

// amountText returns a number or a string as a decimal number, with or without a unit.
func amountText(v decode.Value) (string, bool) {
	switch v.Kind {
	case syntax.Integer:
		n, err := v.Node.Int() // the file has a fault already if it is too large
		return strconv.FormatInt(n, 10), err == nil
	case syntax.Float:
		return strings.ReplaceAll(v.Text, "_", ""), true
	case syntax.String:
		return v.String()
	case syntax.Bool, syntax.Time, syntax.List, syntax.Table:
	}
	v.WrongType("an amount")
	return "", false
}

func readCPUs(v decode.Value, amount string) (string, bool) {
	cpus, err := quantity.CPUs(amount)
	if err != nil {
		v.Fault(fault.BadSize, fmt.Sprintf("%q is not a number of CPUs", amount), `write 4, 0.5 or "500m"`)
	}
	return cpus, err == nil
}

// readCount reads a number of devices, which have no fractions.
func readCount(v decode.Value, amount string) (string, bool) {
	n, err := strconv.ParseUint(amount, 10, 31)
	if err != nil {
		v.Fault(fault.BadSize, fmt.Sprintf("%q is not a number of devices", amount), "write a whole number")
	}
	return strconv.FormatUint(n, 10), err == nil
}

// readBytes reads a size. Of hugepages it is that of whole pages.
func readBytes(name string, v decode.Value, amount string) (string, bool) {
	bytes, err := quantity.Size(amount)
	if err != nil {
		notSize(v, amount, err)
		return "", false
	}
	if page := pageSize(name); page > 0 && bytes%page != 0 {
		v.Fault(fault.BadSize, fmt.Sprintf("%q is not a whole number of pages", amount),
			"write a multiple of "+strings.TrimPrefix(name, hugepages))
		return "", false
	}
	canonical, err := quantity.Memory(amount)
	return canonical, err == nil
}
