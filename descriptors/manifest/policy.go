package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// platformPrefix begins the names of the platform's own objects.
const platformPrefix = "bai-"

// A Reference is an object of the cluster that a manifest names.
type Reference struct {
	Line, Column int
	Kind         string // Secret, PersistentVolumeClaim or PriorityClass
	Name         string
	Pull         bool // the Secret only opens the registry of an image
}

// forbidden are keys that no run may have, with what a descriptor has in their place.
func forbidden() map[string]string {
	const none = "leave it out"
	return map[string]string{
		"hostPath": "name a data source, or a volume in [[volumes]]", "serviceAccountName": none,
		"serviceAccount": none, "serviceAccountToken": none,
		"hostNetwork": none, "hostPID": none, "hostIPC": none, "hostPort": none, "shareProcessNamespace": none, "hostUsers": none,
		"nodeName": "write nodeSelector", "schedulerName": none, "ephemeralContainers": none, "runtimeClassName": none, "hostAliases": none,
		"privileged": "write env.privileged in the descriptor", "procMount": none, "sysctls": none,
		"seLinuxOptions": none, "windowsOptions": none,
		"seccompProfile": none, "appArmorProfile": none, "finalizers": none, "ownerReferences": none,
		"managedFields": none, "externalIPs": none,
		"csi": none, "flexVolume": none, "iscsi": none, "fc": none, "rbd": none, "cephfs": none, "glusterfs": none,
		"nfs":                  "write it into [[volumes]]",
		"awsElasticBlockStore": none, "gcePersistentDisk": none, "azureDisk": none, "azureFile": none,
		"vsphereVolume": none, "cinder": none,
		"portworxVolume": none, "scaleIO": none, "storageos": none, "photonPersistentDisk": none, "quobyte": none,
		"flocker": none, "gitRepo": none,
		"podSpecPatch": "write it into the templates", "schedulingPolicy": "write hardware.queue and hardware.priority in the descriptor",
		"nodePort": none, "externalName": none, "loadBalancerIP": none,
		"volumeName": none, // of a claim
	}
}

// check returns everything in documents that no run may have.
func check(all []Document) []Problem {
	var problems []Problem
	names := map[string]bool{}
	for _, d := range all {
		problems = append(problems, d.identity()...)
		if d.Kind() == "" || d.APIVersion() == "" || d.Name() == "" {
			continue
		}
		key := d.APIVersion() + " " + d.Kind() + " " + d.Name()
		if names[key] {
			problems = append(problems, d.at("metadata").problem(fault.SameObject,
				fmt.Sprintf("%s %q is another object of the manifest, too", d.Kind(), d.Name()), "choose another name"))
			continue
		}
		names[key] = true
		w := walker{document: d, forbidden: forbidden()}
		w.walk(d.root, "", false)
		problems = append(problems, w.problems...)
	}
	return problems
}

// at returns the value of a key, or the document.
func (d Document) at(key string) *node {
	if n := d.root.get(key); n != nil {
		return n
	}
	return d.root
}

// identity returns the problems of what says which object it is.
func (d Document) identity() []Problem {
	var all []Problem
	for _, key := range []string{"apiVersion", "kind"} {
		if n := d.root.get(key); n == nil || n.text() == "" {
			all = append(all, d.at(key).problem(fault.ObjectIdentity, "has no "+key,
				"write "+key+" as apiVersion: batch/v1 and kind: Job do"))
		}
	}
	meta := d.root.get("metadata")
	switch {
	case d.Name() == "":
		all = append(all, d.at("metadata").problem(fault.ObjectIdentity, "has no name",
			"write metadata.name: the platform makes a name of each run from it"))
	case !isName(d.Name()):
		all = append(all, d.at("metadata").problem(fault.ObjectIdentity, fmt.Sprintf("%q is not the name of an object", d.Name()),
			"write lower-case letters, digits and -"))
	}
	if n := meta.get("namespace"); n != nil {
		all = append(all, n.problem(fault.ObjectNamespace,
			fmt.Sprintf("names the namespace %q; all objects of a run are in that of the platform", n.text()),
			"leave metadata.namespace out"))
	}
	if d.Kind() == "Secret" && d.APIVersion() == "v1" {
		all = append(all, d.at("kind").problem(fault.PodRule, "is a Secret, whose values the platform would store with the run",
			"make the Secret in the cluster, and name it"))
	}
	return all
}

// isName reports whether a name can be part of the names of all kinds of objects.
func isName(name string) bool {
	const longest = 63
	return len(name) <= longest && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && strings.Trim(name, "-") == name
}

// walker looks at all values of a document.
type walker struct {
	document   Document
	forbidden  map[string]string
	problems   []Problem
	references []Reference
}

// walk looks at a value under a key. Data are texts for programs, of which no cluster reads
// anything.
func (w *walker) walk(n *node, key string, data bool) {
	if text := n.text(); !data && strings.HasPrefix(text, platformPrefix) {
		w.problems = append(w.problems,
			n.problem(fault.ObjectName,
				fmt.Sprintf("%q is a name of the platform's own objects, which begin with %s", text, platformPrefix),
				"choose another name"))
	}
	for i, value := range n.values {
		if !n.isMap {
			w.walk(value, key, data || value.isText() && (key == "command" || key == "args"))
			continue
		}
		name := n.key(i)
		inside := data || value.isText() && (name == "value" || name == "command" || name == "args") || w.isData(n, name)
		if !inside {
			w.entry(n, i, key)
			w.reference(value, name)
		}
		w.walk(value, name, inside)
	}
}

// isData reports whether a key of a map has the data of a ConfigMap.
func (w *walker) isData(n *node, name string) bool {
	return n == w.document.root && w.document.Kind() == "ConfigMap" && (name == "data" || name == "binaryData")
}

// entry looks at entry i of a map that is the value of parent.
func (w *walker) entry(n *node, i int, parent string) {
	key, value, name := n.keys[i], n.values[i], n.key(i)
	remedy, no := w.forbidden[name]
	switch {
	case parent == "labels" || parent == "annotations" || parent == "matchLabels":
		w.label(key)
	case no && (name == "privileged" || strings.HasPrefix(name, "host")) && value.value == false:
	case no:
		w.refuse(key, fmt.Sprintf("%s is not for runs", name), remedy)
	case parent == "capabilities" && name == "add" && len(value.values) > 0:
		w.refuse(key, "pods of runs get no capabilities", "leave it out")
	case w.document.Kind() == "Service" && parent == "spec" && name == "type" && value.text() != "ClusterIP":
		w.refuse(value, fmt.Sprintf("a Service of type %s is reached from outside of the cluster, or leads there", value.text()),
			"leave type out")
	case name == "automountServiceAccountToken" && value.value != false:
		w.refuse(key, "pods of runs have no token of the cluster", "leave it out")
	case name == "namespace" && n != w.document.root.get("metadata") && value.text() != "": // identity has looked at that
		w.problems = append(w.problems,
			value.problem(fault.ObjectNamespace,
				fmt.Sprintf("names the namespace %q; all objects of a run are in that of the platform", value.text()),
				"leave namespace out"))
	case w.ofArgo():
		w.argo(key, value)
	}
	w.claim(n, i)
	w.parameter(n, i, parent)
}

func (w *walker) refuse(at *node, message, remedy string) {
	w.problems = append(w.problems, at.problem(fault.PodRule, message, remedy))
}

// claim looks at a key that may say which data, or which volume, a claim has.
func (w *walker) claim(n *node, i int) {
	switch name, value := n.key(i), n.values[i]; {
	case isDataSource(name) && value.get("kind") != nil && !isClaim(value.get("apiGroup").text(), value.get("kind").text()):
		w.refuse(n.keys[i], name+" is something else than a claim", "name a "+claimKind+" that the settings allow")
	case name == "selector" && n.get("accessModes") != nil:
		w.refuse(n.keys[i], "a claim of a run takes no volume of its choice", "leave it out")
	}
}

// claimKind is the kind of a claim of a volume, in the core group.
const claimKind = "PersistentVolumeClaim"

func isClaim(group, kind string) bool { return group == "" && kind == claimKind }

// isDataSource reports whether a key says from what a new claim has its data.
func isDataSource(key string) bool { return key == "dataSource" || key == "dataSourceRef" }

// argo looks at a key of an object of Argo, whose templates may be the value of several keys, and
// within steps and tasks.
func (w *walker) argo(key, value *node) {
	name := key.text()
	known := w.misspelled(name)
	switch {
	case known != "":
		w.refuse(key, fmt.Sprintf("Argo reads %s as %s", name, known), "write "+known)
	case name == "resource" && !value.isText(): // a text is the name of a field
		w.refuse(key, "a template of a workflow that makes objects of its own is not for runs", "write the object into the manifest")
	case name == "templateRef" || name == "workflowTemplateRef":
		w.refuse(key, fmt.Sprintf("%s names a template of the cluster, and no rule of runs holds for it", name),
			"write the template into the manifest")
	}
}

// parameter looks at entry i of a map that is the value of parent in an object of Argo. Argo puts
// the values of parameters in for {{…}} after the rules were held, in keys, too.
func (w *walker) parameter(n *node, i int, parent string) {
	const begin = "{{"
	switch key, value := n.keys[i], n.values[i]; {
	case !w.ofArgo():
	case strings.Contains(key.text(), begin):
		w.refuse(key, fmt.Sprintf("%q is a key with a parameter, whose value no rule has seen", key.text()), "write the key itself")
	case strings.Contains(value.text(), begin) && namesObject(parent, key.text()):
		w.refuse(value, fmt.Sprintf("%q names an object by a parameter, whose value no rule has seen", value.text()), "write the name itself")
	}
}

// namesObject reports whether the text of a key, in a map that is the value of parent, names an
// object of the cluster.
func namesObject(parent, key string) bool {
	parent, key = strings.ToLower(parent), strings.ToLower(key)
	if key == "name" || key == "generatename" {
		return parent == "metadata" || strings.HasPrefix(parent, "datasource") || ofObjects(parent)
	}
	ends := func(suffix string) bool { return strings.HasSuffix(key, suffix) }
	return ofObjects(key) || slices.ContainsFunc([]string{"claimname", "templatename", "classname"}, ends)
}

// ofObjects reports whether a key in small letters is about Secrets or ConfigMaps, as imagepullsecrets.
func ofObjects(key string) bool {
	return strings.Contains(key, "secret") || strings.Contains(key, "configmap")
}

func (w *walker) ofArgo() bool { return strings.HasPrefix(w.document.APIVersion(), "argoproj.io/") }

// misspelled returns the key of a rule that differs from name in capitals alone, or "". Argo reads
// the steps of a template with a decoder that ignores them.
func (w *walker) misspelled(name string) string {
	others := []string{
		"resource", "templateRef", "workflowTemplateRef", "automountServiceAccountToken", "namespace", "capabilities", "add",
		"labels", "annotations", "name", "claimName", "dataSource", "dataSourceRef", "apiGroup", "kind", "accessModes", "selector",
	}
	if _, known := w.forbidden[name]; known || slices.Contains(others, name) {
		return ""
	}
	for _, known := range slices.Concat(others, slices.Sorted(maps.Keys(w.forbidden))) {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// label looks at a label or an annotation.
func (w *walker) label(key *node) {
	name := key.text()
	domain, _, _ := strings.Cut(name, "/")
	reserved := []string{
		"benchmark-ai.dev", "kueue.x-k8s.io", "k8s.v1.cni.cncf.io", "v1.multus-cni.io",
		"scheduling.k8s.io", "scheduling.volcano.sh",
	}
	if slices.Contains(reserved, domain) || strings.HasPrefix(domain, "container.apparmor.security") {
		w.problems = append(w.problems,
			key.problem(fault.ObjectName, fmt.Sprintf("%s is a label that only the platform sets", name), "leave it out"))
	}
}

// reference notes an object of the cluster that the value of a key names.
func (w *walker) reference(value *node, key string) {
	add := func(n *node, kind string, pull bool) {
		if name := n.text(); name != "" && !strings.HasPrefix(name, platformPrefix) { // such a name is a problem already
			w.references = append(w.references, Reference{Line: n.line, Column: n.column, Kind: kind, Name: name, Pull: pull})
		}
	}
	switch lower := strings.ToLower(key); {
	case lower == "imagepullsecrets":
		for _, item := range value.values {
			add(item.get("name"), "Secret", true)
		}
	case strings.HasSuffix(lower, "secretname"):
		add(value, "Secret", false)
	case strings.Contains(lower, "secret") && value.isMap: // secretKeyRef, and an artifact's accessKeySecret
		add(value.get("name"), "Secret", false)
	case lower == "claimname":
		add(value, claimKind, false)
	case isDataSource(key) && isClaim(value.get("apiGroup").text(), value.get("kind").text()):
		add(value.get("name"), claimKind, false)
	case strings.Contains(lower, "priorityclass"):
		add(value, "PriorityClass", false)
	}
}

// References returns the objects of the cluster that documents name. A claim among the documents
// is none of them, since its references follow its name.
func References(all []Document) []Reference {
	own := map[string]bool{}
	for _, d := range all {
		if d.APIVersion() == "v1" && d.Kind() == claimKind {
			own[d.Name()] = true
		}
	}
	var references []Reference
	for _, d := range all {
		w := walker{document: d}
		w.walk(d.root, "", false)
		isOwn := func(r Reference) bool { return r.Kind == claimKind && own[r.Name] }
		references = append(references, slices.DeleteFunc(w.references, isOwn)...)
	}
	return references
}
