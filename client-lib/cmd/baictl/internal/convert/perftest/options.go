package perftest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// An option is a key of the spec of a kind.
type option struct {
	name     string
	required bool
	standard any // its value if the spec has none; nil for none

	// read returns the value: an int64, a text or a bool, or what settings takes.
	read func(v document.Value) any

	// settings returns the keys of the descriptor that a value sets. An option without it is a
	// parameter: the texts of the descriptor have its value.
	settings func(value any) []kube.Setting

	// written says that the kind writes the keys itself, as parts of its tables.
	written bool

	// list says that the value of a permutation comes behind that of the template.
	list bool

	// dropped says why a value is not carried over. It is empty for values that are.
	dropped string
}

// parameter returns the name of the option in sweeps: numProcs is num_procs.
func (o option) parameter() string {
	var s strings.Builder
	for i, r := range o.name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				s.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		s.WriteRune(r)
	}
	return s.String()
}

// with returns the option with the keys that it sets.
func (o option) with(settings func(value any) []kube.Setting) option {
	o.settings = settings
	return o
}

// needed returns the option as one that a spec must have.
func (o option) needed() option {
	o.required = true
	return o
}

// inTables returns the option as one whose keys the kind writes.
func (o option) inTables() option {
	o.written = true
	return o
}

// without returns the option as one that is not carried over.
func (o option) without(why string) option {
	o.dropped = why
	return o
}

// Largest whole number of an option.
const most = 1<<31 - 1

// number is an option with a whole number from low on; standard 0 is none.
func number(name string, low, standard int64) option { return between(name, low, most, standard) }

func between(name string, low, high, standard int64) option {
	o := option{name: name, read: func(v document.Value) any { return v.Int(low, high) }}
	if standard != 0 {
		o.standard = standard
	}
	return o
}

// choice is an option with one of some texts. The first is that of a spec without it, unless it is empty.
func choice(name, standard string, values ...string) option {
	o := option{name: name, read: func(v document.Value) any {
		text := v.Scalar()
		if slices.Contains(values, text) {
			return text
		}
		if text != "" {
			v.Fault("", "is %q, and not one of %s", text, strings.Join(values, ", "))
		}
		return values[0]
	}}
	if standard != "" {
		o.standard = standard
	}
	return o
}

// amount is an option with a number and a unit.
func amount(name, standard, units, example string) option {
	pattern := regexp.MustCompile(`^[0-9]{1,18}(` + units + `)?$`)
	return option{name: name, standard: standard, read: func(v document.Value) any {
		text := v.Scalar()
		if text != "" && !pattern.MatchString(text) {
			v.Fault("write a number and a unit, as "+example, "is %q", text)
			return standard
		}
		return text
	}}
}

// text is an option with any text that is not empty.
func text(name string) option {
	return option{name: name, read: func(v document.Value) any {
		s := v.String()
		if v.Kind() == document.Text && s == "" {
			v.Fault("leave it out", "is empty")
		}
		return s
	}}
}

// flag is an option that is true or false.
func flag(name string) option {
	return option{name: name, standard: false, read: func(v document.Value) any { return v.Bool() }}
}

// common returns the options of a kind: its own, and those that all kinds have.
func common(own ...option) []option {
	return append(own, networks("")...)
}

// networks returns the options of networks, resources and images; why says why those of networks
// are not carried over.
func networks(why string) []option {
	return []option{
		flag("hostNetwork").without(why).with(func(v any) []kube.Setting { return []kube.Setting{kube.HostNetwork(v == true)} }),
		text("networkName").without(why).with(func(v any) []kube.Setting { return []kube.Setting{kube.Attachment(fmt.Sprint(v))} }),
		between("mtu", 576, 65535,
			0).without(why).with(func(v any) []kube.Setting { n, _ := v.(int64); return []kube.Setting{kube.MTU(n)} }),
		{
			name: "resources", read: func(v document.Value) any { return kube.Resources(v) },
			settings: func(v any) []kube.Setting { all, _ := v.([]kube.Setting); return all },
		},
		text("image").with(sets("env.docker_image")),
		choice("imagePullPolicy", "", "Always", "IfNotPresent", "Never").with(sets("env.pull_policy")),
	}
}

// mpiOptions returns the options of kinds that use MPI.
func mpiOptions() []option {
	return []option{
		sshPort(),
		choice("transport", "TCP", "TCP", "RDMA").with(func(v any) []kube.Setting { return []kube.Setting{kube.Transport(fmt.Sprint(v))} }),
	}
}

// Ports that descriptors have for sshd: those of users other than root, and the standard one.
const (
	lowestSSHPort   = 1024
	highestSSHPort  = 65535
	standardSSHPort = 2222
)

// sshPort is the option with the port of sshd. Another port than those of descriptors is the standard one.
func sshPort() option {
	o := option{name: "sshPort", read: func(v document.Value) any {
		if n := v.Int(1, most); n >= lowestSSHPort && n <= highestSSHPort {
			return n
		}
		v.Remark("descriptors have ports from %d to %d: left out, which is %d", lowestSSHPort, highestSSHPort, standardSSHPort)
		return int64(standardSSHPort)
	}}
	return o.with(func(v any) []kube.Setting { n, _ := v.(int64); return []kube.Setting{kube.SSHPort(n)} })
}

// sets returns the settings of an option that sets one key to its value.
func sets(key string) func(any) []kube.Setting {
	return func(v any) []kube.Setting { return []kube.Setting{{Key: key, Value: v}} }
}

// arguments is an option with a list of arguments. Its value is their text in a command.
func arguments(name string) option {
	return option{name: name, standard: "", list: true, read: func(v document.Value) any {
		words := v.Strings()
		for i, item := range v.Items() {
			if words[i] == "" {
				item.Fault("leave it out", "is empty")
			}
		}
		return draft.Words(words)
	}}
}

// show returns a value in a text.
func show(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
