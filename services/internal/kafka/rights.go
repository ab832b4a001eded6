package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Pods is the name among Principals of what runs in pods.
const Pods = "pods"

// Principals are whom brokers know, by what they are to the platform: a service,
// "services" for all of them, or "pods".
type Principals map[string][]string

// Right is what a principal may do, as brokers name it.
type Right struct {
	Principal string // User:bai
	Resource  string // topic or group
	Name      string
	Prefix    bool   // all of which Name is the beginning
	Operation string // Read or Write; each of them implies Describe
}

// Compare orders rights by principal, resource, name and operation.
func (r Right) Compare(o Right) int {
	return cmp.Or(
		cmp.Compare(r.Principal, o.Principal), -cmp.Compare(r.Resource, o.Resource),
		cmp.Compare(r.Name, o.Name), cmp.Compare(r.Operation, o.Operation),
	)
}

// String says what the right is.
func (r Right) String() string {
	of := r.Name
	if r.Prefix {
		of += "*"
	}
	return fmt.Sprintf("%s may %s %s %s", r.Principal, strings.ToLower(r.Operation), r.Resource, of)
}

// role is what a part of the platform hears and says, and how the names of its
// consumer groups begin.
type role struct {
	hears, says []string
	groups      string
}

// roles returns what each part of the platform needs, and nothing more.
func roles() map[string]role {
	dead, status, finished := event.TopicDead, event.TopicStatus, event.TopicFinished
	return map[string]role{
		"gateway": {
			hears:  []string{event.TopicSubmitted, event.TopicCommands, event.TopicFetched, event.TopicLaunched, event.TopicRetried, status, finished},
			says:   []string{event.TopicSubmitted, event.TopicCommands, status, finished, dead}, // status: of schedules
			groups: "gateway",
		},
		"fetcher": {
			hears:  []string{event.TopicSubmitted, event.TopicCommands},
			says:   []string{status, event.TopicFetched, finished, dead},
			groups: "fetcher",
		},
		"executor": {
			hears:  []string{event.TopicFetched, event.TopicRetried, event.TopicCommands, finished},
			says:   []string{status, event.TopicLaunched, finished, dead},
			groups: "executor",
		},
		"watcher": {
			hears:  []string{event.TopicLaunched, event.TopicCommands},
			says:   []string{status, event.TopicRetried, finished, event.TopicMetrics, event.TopicLogs, dead},
			groups: "watcher",
		},
		"metrics-pusher": {
			hears:  []string{event.TopicMetrics, event.TopicLogs, finished},
			says:   []string{dead},
			groups: "metrics-pusher",
		},
		Pods: {says: []string{status, event.TopicMetrics, event.TopicLogs}},
	}
}

// validate names every setting at fault, below the table called name.
func (p Principals) validate(name string) error {
	var errs []error
	known := append(slices.Sorted(maps.Keys(roles())), "services")
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, key) {
			errs = append(errs, fmt.Errorf("%s.%s: there is no such part of the platform; there are %s", name, key, strings.Join(known, ", ")))
		}
		for _, who := range p[key] {
			if !strings.HasPrefix(who, "User:") || who == "User:*" || who == "User:" {
				errs = append(errs, fmt.Errorf("%s.%s: %q, want User:NAME", name, key, who))
			}
			if key != Pods && slices.Contains(p[Pods], who) {
				errs = append(errs, fmt.Errorf("%s.%s: %s is the principal of pods too, which could then end runs: use another", name, key, who))
			}
		}
	}
	return errors.Join(errs...)
}

// Rights returns what each principal needs, sorted, each once.
func (p Principals) Rights() []Right {
	var out []Right
	for part, r := range roles() {
		who := p[part]
		if part != Pods {
			who = slices.Concat(who, p["services"])
		}
		for _, principal := range who {
			out = append(out, r.rights(principal)...)
		}
	}
	slices.SortFunc(out, Right.Compare)
	return slices.Compact(out)
}

func (r role) rights(principal string) []Right {
	var out []Right
	for _, topic := range r.hears {
		out = append(out, Right{Principal: principal, Resource: "topic", Name: topic, Operation: "Read"})
	}
	for _, topic := range r.says {
		out = append(out, Right{Principal: principal, Resource: "topic", Name: topic, Operation: "Write"})
	}
	if r.groups != "" {
		out = append(out, Right{Principal: principal, Resource: "group", Name: r.groups, Prefix: true, Operation: "Read"})
	}
	return out
}
