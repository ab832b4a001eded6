// Package kube converts the parts of Kubernetes objects that several systems have: metadata,
// resources, containers and volumes.
package kube

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
)

// A Setting is a key of a descriptor that an option sets, with its value.
type Setting struct {
	Key   string // with its tables, as network.host_network
	Value any
}

// KeyRDMA is the key of the devices for remote direct memory access.
const KeyRDMA = "network.rdma"

// HostNetwork returns the setting for pods on the network of their node.
func HostNetwork(on bool) Setting { return Setting{"network.host_network", on} }

// Attachment returns the setting for the first network of the pods: name, or namespace/name, of a NetworkAttachmentDefinition.
func Attachment(name string) Setting { return Setting{"network.attachment", name} }

// MTU returns the setting for the largest packet of the pods' network, in bytes.
func MTU(bytes int64) Setting { return Setting{"network.mtu", bytes} }

// Transport returns the setting for the messages of MPI: TCP or RDMA.
func Transport(name string) Setting { return Setting{"network.transport", strings.ToLower(name)} }

// SSHPort returns the setting for the port on which the workers of MPI take connections.
func SSHPort(port int64) Setting { return Setting{"network.ssh_port", port} }

// RDMA returns the setting for some devices for remote direct memory access.
func RDMA(resource string, count int64) Setting {
	return Setting{KeyRDMA, draft.Inline{{Key: "resource", Value: resource}, {Key: "count", Value: count}}}
}

// WithRDMA returns the settings of resources whose only device is one for remote direct memory
// access: without any such device, the only limit of an extended resource is that device.
func WithRDMA(settings []Setting) []Setting {
	device, ok := onlyDevice(settings)
	if !ok {
		return settings
	}
	var all []Setting
	for _, s := range settings {
		if rest, ok := s.Value.(draft.Inline); ok && (s.Key == requests || s.Key == limits) {
			s.Value = slices.DeleteFunc(slices.Clone(rest), func(p draft.Pair) bool { return p.Key == device.Key })
			if len(rest) == 1 && rest[0].Key == device.Key {
				continue
			}
		}
		all = append(all, s)
	}
	n, _ := device.Value.(int64)
	return append(all, RDMA(device.Key, n))
}

// onlyDevice returns the extended resource of the limits, if there is one alone and none is for
// remote direct memory access.
func onlyDevice(settings []Setting) (device draft.Pair, ok bool) {
	for _, s := range settings {
		if s.Key == KeyRDMA {
			return draft.Pair{}, false
		}
		all, _ := s.Value.(draft.Inline)
		for _, p := range all {
			n, isNumber := p.Value.(int64)
			switch {
			case s.Key != limits || !strings.Contains(p.Key, "/") || !isNumber || n == 0:
			case ok:
				return draft.Pair{}, false
			default:
				device, ok = p, true
			}
		}
	}
	return device, ok
}

// Apply writes settings.
func Apply(d *draft.Draft, settings ...Setting) {
	for _, s := range settings {
		if all, ok := s.Value.(draft.Inline); ok && (s.Key == requests || s.Key == limits) {
			for _, p := range all {
				d.Table(s.Key).Set(p.Key, p.Value)
			}
			continue
		}
		i := strings.LastIndex(s.Key, ".")
		d.Table(s.Key[:i]).Set(s.Key[i+1:], s.Value)
	}
}
