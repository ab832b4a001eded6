// Package parser is the one strict parser of descriptors, with the faults of a file, the
// overrides of keys, and the list of all keys.
package parser

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/check"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/grid"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// MaxSize is the size in bytes above which a descriptor is refused.
const MaxSize = 256 << 10

// Parse reads one descriptor. It reports every fault of text at once, in the
// order of their places, with name as the file. The descriptor is nil if one of
// the faults is an error; warnings come with it. Equal texts give equal results.
func Parse(name string, text []byte) (*descriptors.Descriptor, Faults) {
	return Parser{}.Parse(name, text)
}

// A Parser is Parse with settings. The zero Parser is Parse.
type Parser struct {
	// Instances are the kinds of machines that are known beside those that every
	// Parser knows. They win over those.
	Instances descriptors.Instances

	// Zones are the IDs of zones that the platform knows; hardware.aws_zone_id may
	// have no other. Nil means that nothing is known of them: any ID is taken.
	Zones []string

	// NodeSelector are the labels that the nodes of all pods of the platform have; a
	// descriptor may give none of them another value.
	NodeSelector map[string]string

	// PullPolicy is that of all images of the platform, as Kubernetes names it; a descriptor
	// may name no other. Empty means that each descriptor may choose.
	PullPolicy string

	// Placements are those that a descriptor may name. Nil means that it may name any.
	Placements []string

	// Engines are those that the platform has; info.execution_engine may name no
	// other. Nil means that nothing is known of them.
	Engines []string

	// Named are the parsers of engines that have settings of their own, by name: a
	// descriptor that names one is held to the clusters' settings of that parser, and
	// to the rest of this one.
	Named map[string]Parser

	// OneMachine says that the platform is one machine, which stands for all types
	// and zones: keys that name a zone get one warning, and are not read.
	OneMachine bool

	// CustomParams says that the engine reads the table custom_params.
	CustomParams bool

	// Allow says which Secrets, claims, priority classes and queues the descriptors of
	// Namespace may name. Nil means that nothing is known of them: a descriptor may
	// name any but the platform's own.
	Allow descriptors.Allowlists

	// Destinations are those of the platform, with the namespaces whose descriptors may
	// name each; no namespaces means all. Nil means that nothing is known of them: a
	// descriptor may name any.
	Destinations map[string][]string

	// Receivers are those of the platform that a descriptor may notify, with the namespaces whose
	// descriptors may name each; no namespaces means all. Nil means that nothing is known of
	// them: a descriptor may name any.
	Receivers map[string][]string

	// Manifests are the kinds that manifests may have beside those of every platform, as
	// Workflow.v1alpha1.argoproj.io. Nil means that nothing is known of them: a manifest may
	// have any.
	Manifests []string

	// Namespace is the team that the descriptor belongs to; empty means default.
	Namespace string

	// MaxRuns is how many runs a sweep may make; 0 means DefaultMaxRuns.
	MaxRuns int

	// Budget bounds the work of all readings that share it, beside the bounds of each one; nil
	// for no more than these. A sweep that goes beyond it is refused.
	Budget *Budget

	// Accepted means that the platform has accepted the descriptor already: values that
	// only its settings know are no faults.
	Accepted bool
}

// In returns the Parser for descriptors of a namespace.
func (p Parser) In(namespace string) Parser {
	p.Namespace = namespace
	return p
}

// on returns the Parser for descriptors that name an engine.
func (p Parser) on(engine string) Parser {
	named, ok := p.Named[engine]
	if !ok {
		return p
	}
	named.Engines, named.Destinations, named.Receivers = p.Engines, p.Destinations, p.Receivers
	named.Namespace, named.MaxRuns, named.Accepted = p.Namespace, p.MaxRuns, p.Accepted
	return named
}

// platform returns what the rules between keys know of the platform.
func (p Parser) platform() check.Platform {
	return check.Platform{
		Instances: p.Instances, Zones: p.Zones, NodeSelector: p.NodeSelector, PullPolicy: p.PullPolicy, Placements: p.Placements,
		Engines: p.Engines, OneMachine: p.OneMachine, CustomParams: p.CustomParams, Allow: p.Allow,
		Destinations: p.Destinations, Receivers: p.Receivers, Manifests: p.Manifests, Namespace: p.Namespace, Accepted: p.Accepted,
	}
}

// UnknownReceiver returns a fault and its remedy if the descriptors of the namespace may not notify a receiver.
func (p Parser) UnknownReceiver(name string) (message, remedy string, unknown bool) {
	return p.platform().UnknownReceiver(name)
}

// Parse is as the function Parse.
func (p Parser) Parse(name string, text []byte) (*descriptors.Descriptor, Faults) {
	d, _, faults := p.Expand(name, text)
	return d, faults
}

// Expand is Parse that also returns the cells of the sweep, for package sweep: nil without a
// sweep, and if one of the faults is an error. The cells refer to text, which must not change.
func (p Parser) Expand(name string, text []byte) (*descriptors.Descriptor, *grid.Grid, Faults) {
	if faults, bad := unreadable(name, text); bad {
		return nil, nil, faults
	}
	body := bytes.TrimPrefix(text, []byte(byteOrderMark))
	tree, broken := syntax.Parse(body)
	d, g, found := p.readCells(body, tree, len(broken) > 0)
	faults := ofAttachment(name, tree, collect(name, slices.Concat(decode.Broken(broken), found)))
	if len(faults.Errors()) > 0 {
		return nil, nil, faults
	}
	return d, g, faults
}

// byteOrderMark is that of UTF-8, with which a text may begin.
const byteOrderMark = "\ufeff"

// read is the descriptor in tree, and its faults. A damaged file has no missing keys, as
// its unreadable parts may hold them.
func (p Parser) read(tree *syntax.Node, damaged bool) (*descriptors.Descriptor, []decode.Fault) {
	d := &descriptors.Descriptor{}
	report := decode.Decode(tree, d, valueTypesOf(tree))
	complete(d, report)
	check.Descriptor(d, report, p.on(d.Info.ExecutionEngine).platform(), damaged)
	return d, report.Faults
}

// unreadable reports a text that is not worth being looked at more closely.
func unreadable(name string, text []byte) (f Faults, bad bool) {
	one, bad := decode.Unreadable(text, MaxSize)
	return collect(name, []decode.Fault{one}), bad
}

// collect gives the faults of name in the order of their places.
func collect(name string, found []decode.Fault) Faults {
	faults := make(Faults, 0, len(found))
	for _, f := range found {
		faults = append(faults, Fault{
			File: name, Line: f.At.Line, Column: f.At.Column, Path: f.Path, Code: f.Code,
			Message: f.Message, Remedy: f.Remedy, Warning: f.Warning,
		})
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return faults
}

// LimitsOf returns the limits of a descriptor as far as they can be read, whatever is
// wrong with the rest of it: for one that was written for a newer parser.
func LimitsOf(text []byte) descriptors.Limits {
	if _, bad := unreadable("", text); bad {
		return descriptors.Limits{}
	}
	tree, _ := syntax.Parse(bytes.TrimPrefix(text, []byte(byteOrderMark)))
	d, _ := Parser{}.read(tree, true)
	return d.Limits
}
