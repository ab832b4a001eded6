package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/manifest"
)

// manifest checks the table manifest, and what a run of strategy manifest cannot have.
func (c rules) manifest() {
	const at, strategy = "manifest", "hardware.strategy"
	mine := c.d.Hardware.Strategy == descriptors.FromManifest
	switch {
	case c.r.HasError(strategy) || !c.r.Has("hardware"):
		return
	case !mine && c.r.Has(at):
		c.r.Fault(at, fault.ManifestConflict, c.strategy()+" does not make these objects",
			`write strategy = "manifest" in [hardware], or leave the table out`)
		return
	case !mine:
		return
	case c.platform.OneMachine && !c.platform.Accepted:
		c.r.Fault(strategy, fault.OneMachineOnly, "the local cluster has no controllers that run objects of a manifest",
			"run it on a platform with Kubernetes, or write another strategy")
	}
	if !c.r.Has(at) && !c.damaged {
		c.r.Fault(strategy, fault.ManifestConflict, "strategy manifest needs the objects", "add [manifest] with objects")
	}
	for _, table := range []string{"roles", "steps", "server", "network"} {
		if c.r.Has(table) {
			c.r.Fault(table, fault.ManifestConflict, "is for pods that the platform makes; with strategy manifest the objects make them",
				"write it into the manifest")
		}
	}
	if !c.r.Has(at) {
		return
	}
	c.objectsOrFile()
	if key := c.d.ObjectsKey(); c.r.IsValid(key) {
		c.objects(key)
	}
}

// objectsOrFile finds a manifest with both or none of them, and a file without its text.
func (c rules) objectsOrFile() {
	objects, file := c.r.Has(descriptors.ManifestKey), c.r.Has(descriptors.ManifestFileKey)
	switch {
	case objects && file:
		c.r.Fault(descriptors.ManifestFileKey, fault.ManifestConflict, "is another manifest, beside objects", "keep one of the two")
	case !objects && !file && !c.damaged:
		c.r.Fault(descriptors.ManifestKey, fault.Missing, "is missing", "add objects, or file")
	case c.r.IsValid(descriptors.ManifestFileKey) && !c.d.Manifest.File.Attached:
		c.r.Fault(descriptors.ManifestFileKey, fault.NoFileText, fmt.Sprintf("the text of %q is not here", c.d.Manifest.File.Name),
			"use baictl, which reads the file for a descriptor that is one, or write its text into manifest.objects")
	}
}

// objects checks the objects of the manifest, which are at key.
func (c rules) objects(key string) {
	documents, problems := c.d.ReadManifest()
	for _, p := range problems {
		c.r.FaultInside(c.d.ObjectsKey(), p.Line, p.Column, p.Code, p.Message, p.Remedy)
	}
	if len(problems) > 0 {
		return
	}
	own, ends, unknown, unlabeled := c.d.Manifest.Succeeded != "", false, false, false
	for _, d := range documents {
		ends = ends || d.Ends(own)
		kind, known := manifest.Find(d.APIVersion(), d.Kind())
		unknown = unknown || !known && !d.OfPlatform()
		unlabeled = unlabeled || d.Ends(own) && kind.Unlabeled()
		c.kind(d)
	}
	if !ends && !c.r.Has("manifest.succeeded") {
		c.r.Fault(key, fault.NoObjectEnds,
			"none of the objects is of a kind whose end is known, so that the run would never end",
			`add succeeded = "condition=TYPE" or "jsonpath={.status.phase}=VALUE"`)
	}
	c.unreadOfKinds(unknown, unlabeled)
}

// unreadOfKinds warns of keys that are for kinds which the platform does not know, or whose pods get no labels.
func (c rules) unreadOfKinds(unknown, unlabeled bool) {
	if c.r.Has("manifest.pods") && !unlabeled {
		c.r.Warn("manifest.pods", fault.NotRead, "the platform finds the pods of these kinds by its own labels", "leave it out")
	}
	for _, key := range []string{"manifest.succeeded", "manifest.failed"} {
		if c.r.Has(key) && !unknown {
			c.r.Warn(key, fault.NotRead, "the platform knows how objects of these kinds end", "leave it out")
		}
	}
}

// kind finds a kind that the platform does not take.
func (c rules) kind(d manifest.Document) {
	kinds, name := c.platform.Manifests, d.ResourceKind()
	if kinds == nil || c.platform.Accepted || d.OfPlatform() || slices.Contains(kinds, name) {
		return
	}
	others := slices.Concat([]string{"Job.v1.batch", "ConfigMap.v1", "Service.v1"}, kinds)
	c.r.FaultInside(c.d.ObjectsKey(), d.Line, d.Column, fault.OtherKind, fmt.Sprintf("this platform takes no %s", name),
		"its kinds are "+strings.Join(others, ", ")+"; the platform's settings list them (executor.pods.manifests)")
}

// faultOf reports a reference that the platform refuses, at its place in the manifest if it is
// from there.
func (c rules) faultOf(r descriptors.Reference, code, message, remedy string) {
	if r.Path == c.d.ObjectsKey() {
		c.r.FaultInside(r.Path, r.Line, r.Column, code, message, remedy)
		return
	}
	c.r.Fault(r.Path, code, message, remedy)
}
