package open

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
)

// anyOwner is the owner of a receiver for those that no other receiver names.
const anyOwner = "*"

// Namespaces returns the namespaces that may use each receiver, by its name: none means all. It is never nil.
func (s Settings) Namespaces() map[string][]string {
	all := make(map[string][]string, len(s))
	for name, r := range s {
		all[name] = r.Namespaces
	}
	return all
}

// defaults returns the names of the receivers that get the notices of a namespace's alarms without notify, sorted.
func (s Settings) defaults(namespace string) []string {
	return s.find(namespace, func(r ReceiverSettings) bool { return r.Default })
}

// ofOwner returns the names of the receivers that get the notices for an owner of runs in a namespace, sorted: those that name the owner,
// or those for all others.
func (s Settings) ofOwner(namespace, owner string) []string {
	if owner == "" {
		return nil
	}
	names := s.find(namespace, func(r ReceiverSettings) bool { return owner != anyOwner && slices.Contains(r.Owners, owner) })
	if len(names) == 0 {
		return s.find(namespace, func(r ReceiverSettings) bool { return slices.Contains(r.Owners, anyOwner) })
	}
	return names
}

// find returns the names of the receivers of a namespace that are wanted, sorted.
func (s Settings) find(namespace string, wanted func(ReceiverSettings) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if r := s[name]; r.allows(namespace) && wanted(r) {
			names = append(names, name)
		}
	}
	return names
}

func (r ReceiverSettings) allows(namespace string) bool {
	return (receiver.Rules{Namespaces: r.Namespaces}).Allows(namespace)
}

// named returns the names of the receivers of a namespace that notify names, each once: those that the settings have for the namespace, and
// for submitter, those of the owner. The error names those that the settings do not have.
func (s Settings) named(namespace, owner string, notify []string) (names []string, err error) {
	var errs []error
	for _, name := range notify {
		found := []string{name}
		if name == descriptors.Submitter {
			found = s.ofOwner(namespace, owner)
		}
		if r, ok := s[name]; name != descriptors.Submitter && (!ok || !r.allows(namespace)) {
			found = nil
		}
		if len(found) == 0 {
			errs = append(errs, fmt.Errorf("receiver %q: the settings have none of this name for namespace %q and owner %q", name,
				namespace, owner))
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(errs...)
}

// Resolver returns the receivers of the settings. It logs names that the settings do not have.
func (s Settings) Resolver(log *zap.Logger) notice.Receivers {
	return func(namespace, owner string, notify []string) []string {
		if len(notify) == 0 {
			return s.defaults(namespace)
		}
		names, err := s.named(namespace, owner, notify)
		if err != nil {
			log.Warn("a descriptor names a receiver that it cannot use", zap.String("namespace", namespace), zap.Error(err))
		}
		return names
	}
}
