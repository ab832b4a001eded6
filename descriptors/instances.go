package descriptors

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// builtinInstances are the kinds of machines that every parser knows.
//
//go:embed instances.txt
var builtinInstances string

// Instances are kinds of machines and the number of their GPUs, as a text: on
// each line a name and a number. In place of the end of a name * stands for any
// end; a name in full wins over it, then an earlier line over a later one. Empty
// lines and those that begin with # are comments.
type Instances string

// Check returns the fault of the first invalid line, nil without one.
func (i Instances) Check() error {
	n := 0
	for line := range strings.Lines(string(i)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if _, _, ok := instance(line); !ok {
			return fmt.Errorf("read instance types: line %d: %q is not a name and a number of GPUs", n, strings.TrimSpace(line))
		}
	}
	return nil
}

// GPUs is the number of GPUs of the machines of type name, from i, else from
// those that every parser knows. A name of Amazon SageMaker, which
// begins with "ml.", is that of the machine that the rest names.
func (i Instances) GPUs(name string) (int, bool) {
	name = strings.TrimPrefix(name, "ml.")
	if n, ok := i.find(name); ok {
		return n, true
	}
	return Instances(builtinInstances).find(name)
}

func (i Instances) find(name string) (int, bool) {
	best, found := 0, false
	for line := range strings.Lines(string(i)) {
		pattern, gpus, ok := instance(line)
		switch prefix, open := strings.CutSuffix(pattern, "*"); {
		case !ok:
		case pattern == name:
			return gpus, true
		case open && !found && strings.HasPrefix(name, prefix):
			best, found = gpus, true
		}
	}
	return best, found
}

// instance reads a line.
func instance(line string) (name string, gpus int, ok bool) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	gpus, err := strconv.Atoi(strings.TrimSpace(rest))
	return name, gpus, err == nil && gpus >= 0 && name != "" && name[0] != '#'
}

// GPUCount is the number of GPUs of each pod: gpus if it is given, else that of the
// instance type, else, without an instance type, 0. It is false for an unknown type.
func (h Hardware) GPUCount() (int, bool) {
	switch {
	case h.GPUs != nil:
		return *h.GPUs, true
	case h.InstanceType == "":
		return 0, true
	}
	return Instances("").GPUs(h.InstanceType)
}

// GPUCount is the number of GPUs of each of the benchmark's pods, as
// Hardware.GPUCount.
func (d *Descriptor) GPUCount() (int, bool) { return d.Hardware.GPUCount() }

// Processes is the number of MPI processes in each pod.
func (h Hardware) Processes() int {
	p := h.Distributed.ProcessesPerInstance
	if !p.OnePerGPU {
		return max(p.Number, 1)
	}
	gpus, _ := h.GPUCount() // the parser refuses an unknown type
	return max(gpus, 1)
}
