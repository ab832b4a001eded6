package access

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Pods is the name of pods among Principals.
const Pods = "pods"

// Principals are the users of the brokers by their part of the platform: a service,
// "services" for all of them, or "pods".
type Principals map[string][]string

// ACL is a right of a principal, in the terms of the brokers.
type ACL struct {
	Principal string // User:bai
	Resource  string // topic or group
	Name      string
	Prefixed  bool   // Name is a prefix
	Operation string // Read or Write; each of them implies Describe
}

// Compare orders rights by principal, resource, name and operation.
func (r ACL) Compare(o ACL) int {
	return cmp.Or(
		cmp.Compare(r.Principal, o.Principal), -cmp.Compare(r.Resource, o.Resource),
		cmp.Compare(r.Name, o.Name), cmp.Compare(r.Operation, o.Operation),
	)
}

// String describes the right.
func (r ACL) String() string {
	of := r.Name
	if r.Prefixed {
		of += "*"
	}
	return fmt.Sprintf("%s may %s %s %s", r.Principal, strings.ToLower(r.Operation), r.Resource, of)
}

// role is the topics that a part of the platform reads and writes, and the prefix of
// its consumer groups.
type role struct {
	consumes, produces []string
	groups             string
}

// roles returns the least that each part of the platform needs.
func roles() map[string]role {
	dead, status, finished := event.TopicDead, event.TopicStatus, event.TopicFinished
	return map[string]role{
		"gateway": {
			consumes: []string{
				event.TopicSubmitted, event.TopicCommands, event.TopicFetched, event.TopicLaunched,
				event.TopicRetried, status, finished,
			},
			produces: []string{event.TopicSubmitted, event.TopicCommands, status, finished, dead}, // status: of schedules
			groups:   "gateway",
		},
		"fetcher": {
			consumes: []string{event.TopicSubmitted, event.TopicCommands},
			produces: []string{status, event.TopicFetched, finished, dead},
			groups:   "fetcher",
		},
		"executor": {
			consumes: []string{event.TopicFetched, event.TopicRetried, event.TopicCommands, finished},
			produces: []string{status, event.TopicLaunched, finished, dead},
			groups:   "executor",
		},
		"watcher": {
			consumes: []string{event.TopicLaunched, event.TopicCommands},
			produces: []string{status, event.TopicRetried, finished, event.TopicMetrics, event.TopicLogs, dead},
			groups:   "watcher",
		},
		"metrics-pusher": {
			consumes: []string{event.TopicMetrics, event.TopicLogs, finished},
			produces: []string{event.TopicSummarised, dead},
			groups:   "metrics-pusher",
		},
		"analyst": {
			consumes: []string{finished, event.TopicSummarised},
			produces: []string{dead},
			groups:   "analyst",
		},
		Pods: {produces: []string{status, event.TopicMetrics, event.TopicLogs}},
	}
}

// Validate names every setting at fault, below the table called name.
func (p Principals) Validate(name string) error {
	var errs []error
	parts := append(slices.Sorted(maps.Keys(roles())), "services")
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(parts, key) {
			errs = append(errs, fmt.Errorf("%s.%s: there is no such part of the platform; there are %s", name,
				key, strings.Join(parts, ", ")))
		}
		for _, principal := range p[key] {
			if !strings.HasPrefix(principal, "User:") || principal == "User:*" || principal == "User:" {
				errs = append(errs, fmt.Errorf("%s.%s: %q, want User:NAME", name, key, principal))
			}
			if key != Pods && slices.Contains(p[Pods], principal) {
				errs = append(errs, fmt.Errorf("%s.%s: %s is the principal of pods too, which could then end runs: use another", name, key,
					principal))
			}
		}
	}
	return errors.Join(errs...)
}

// ACLs returns the rights that each principal needs, sorted, each once.
func (p Principals) ACLs() []ACL {
	var out []ACL
	for part, r := range roles() {
		principals := p[part]
		if part != Pods {
			principals = slices.Concat(principals, p["services"])
		}
		for _, principal := range principals {
			out = append(out, r.acls(principal)...)
		}
	}
	slices.SortFunc(out, ACL.Compare)
	return slices.Compact(out)
}

func (r role) acls(principal string) []ACL {
	var out []ACL
	for _, topic := range r.consumes {
		out = append(out, ACL{Principal: principal, Resource: "topic", Name: topic, Operation: "Read"})
	}
	for _, topic := range r.produces {
		out = append(out, ACL{Principal: principal, Resource: "topic", Name: topic, Operation: "Write"})
	}
	if r.groups != "" {
		out = append(out, ACL{Principal: principal, Resource: "group", Name: r.groups, Prefixed: true, Operation: "Read"})
	}
	return out
}
