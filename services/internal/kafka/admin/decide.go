package admin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// State is the state of the brokers.
type State struct {
	Topics       map[string]kafka.Topic // by name
	ACLs         []Rule                 // of any principal, to topics and groups
	ACLsDisabled bool                   // the brokers check no rights
}

// Rule is a right that the brokers have, or a denial of it.
type Rule struct {
	access.ACL

	Host string // the clients at this address alone; empty means all
	Deny bool   // outweighs every right
}

// String describes the rule.
func (r Rule) String() string {
	text := r.ACL.String()
	if r.Deny {
		text = strings.Replace(text, " may ", " may not ", 1)
	}
	if r.Host != "" {
		text += " from host " + r.Host
	}
	return text
}

// Growth is a topic that gets more partitions.
type Growth struct {
	Topic    string
	From, To int
}

// Setting is a changed setting of a topic.
type Setting struct {
	Topic, Key, From, To string
}

// Changes are the differences between the state of the brokers and the wanted state.
type Changes struct {
	Create []kafka.Topic
	Alter  []Setting
	Grant  []access.ACL
	Grow   []Growth // for which no run may be under way
	Notes  []string // problems that only an operator can repair, with the remedy
}

// Decide returns the changes that give the brokers the topics and rights. It omits what exists already: after the changes were applied, it
// returns only notes.
func Decide(topics []kafka.Topic, rights []access.ACL, have State) Changes {
	var p Changes
	for _, want := range topics {
		is, ok := have.Topics[want.Name]
		if !ok {
			p.Create = append(p.Create, want)
			continue
		}
		p.compare(want, is)
	}
	if have.ACLsDisabled {
		if len(rights) > 0 {
			p.Notes = append(p.Notes,
				"the brokers check no rights, so that whoever reaches them can end any run: set authorizer.class.name, and listeners that ask who speaks")
		}
		return p
	}
	for _, r := range rights {
		if !slices.ContainsFunc(have.ACLs, func(is Rule) bool { return covers(is, r) }) {
			p.Grant = append(p.Grant, r)
		}
	}
	p.Notes = append(p.Notes, excessACLs(rights, have.ACLs)...)
	p.Notes = append(p.Notes, denials(rights, have.ACLs)...)
	return p
}

func (p *Changes) compare(want, is kafka.Topic) {
	for _, key := range slices.Sorted(maps.Keys(want.Configs)) {
		if is.Configs[key] != want.Configs[key] {
			p.Alter = append(p.Alter, Setting{want.Name, key, is.Configs[key], want.Configs[key]})
		}
	}
	switch {
	case is.Partitions < want.Partitions:
		p.Grow = append(p.Grow, Growth{want.Name, is.Partitions, want.Partitions})
	case is.Partitions > want.Partitions:
		p.Notes = append(p.Notes,
			fmt.Sprintf("topic %s has %d partitions, and kafka.topics wants %d: no broker can take partitions away, so leave it or say %[2]d", want.Name, is.Partitions, want.Partitions))
	}
	if is.Replication != want.Replication {
		p.Notes = append(p.Notes,
			fmt.Sprintf("topic %s has %s, and kafka.topics wants %d: kafka-reassign-partitions.sh of the brokers changes that", want.Name,
				count(is.Replication, "copy", "copies"), want.Replication))
	}
}

// covers reports whether the rule gives the right r to clients at all addresses.
func covers(is Rule, r access.ACL) bool {
	if is.Deny || is.Host != "" || !concerns(is, r) || is.Operation != r.Operation && is.Operation != "All" {
		return false
	}
	if is.Prefixed {
		return strings.HasPrefix(r.Name, is.Name)
	}
	return is.Name == "*" || is.Name == r.Name && !r.Prefixed
}

// concerns reports whether the rule is about the principal and the kind of resource of the right r.
func concerns(is Rule, r access.ACL) bool {
	return (is.Principal == r.Principal || is.Principal == "User:*") && is.Resource == r.Resource
}

// denies reports whether the rule takes the right r away, or a part of it.
func denies(is Rule, r access.ACL) bool {
	if !is.Deny || !concerns(is, r) || is.Operation != r.Operation && is.Operation != "All" && is.Operation != "Describe" {
		return false
	}
	return is.Name == r.Name || !is.Prefixed && is.Name == "*" ||
		is.Prefixed && strings.HasPrefix(r.Name, is.Name) || r.Prefixed && strings.HasPrefix(is.Name, r.Name)
}

// excessACLs lists the rights of the wanted principals that they do not need.
func excessACLs(wanted []access.ACL, have []Rule) []string {
	var notes []string
	for _, is := range have {
		relevant := is.Principal == "User:*" || slices.ContainsFunc(wanted, func(r access.ACL) bool { return r.Principal == is.Principal })
		if is.Deny || !relevant || len(wanted) == 0 || is.Operation == "Describe" || slices.Contains(wanted, is.ACL) {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s, which it does not need: kafka-acls.sh --remove takes that away", is))
	}
	return notes
}

// denials lists the denials of wanted rights.
func denials(wanted []access.ACL, have []Rule) []string {
	var notes []string
	for _, is := range have {
		if slices.ContainsFunc(wanted, func(r access.ACL) bool { return denies(is, r) }) {
			notes = append(notes, fmt.Sprintf("%s, and a denial outweighs the rights that are needed: kafka-acls.sh --remove takes it away", is))
		}
	}
	return notes
}

// Empty reports whether there is nothing to change.
func (p Changes) Empty() bool { return len(p.Create)+len(p.Alter)+len(p.Grant)+len(p.Grow) == 0 }

// Lines returns a line for each step of the plan.
func (p Changes) Lines() []string {
	var lines []string
	for _, t := range p.Create {
		parts := []string{"+ topic " + t.Name, count(t.Partitions, "partition", "partitions"), count(t.Replication, "copy", "copies")}
		for _, key := range slices.Sorted(maps.Keys(t.Configs)) {
			parts = append(parts, key+"="+t.Configs[key])
		}
		lines = append(lines, strings.Join(parts, ", "))
	}
	for _, s := range p.Alter {
		lines = append(lines, fmt.Sprintf("~ topic %s: %s %s -> %s", s.Topic, s.Key, s.From, s.To))
	}
	for _, g := range p.Grow {
		lines = append(lines, fmt.Sprintf("~ topic %s: %d -> %d partitions, with --grow only and while no run is under way: events of one run would lie in two partitions", g.Topic, g.From, g.To))
	}
	for _, r := range p.Grant {
		lines = append(lines, "+ "+r.String())
	}
	for _, n := range p.Notes {
		lines = append(lines, "! "+n)
	}
	return lines
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
