package descriptors

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
)

// PlatformPrefix begins the names of the platform's own objects in a cluster. No
// descriptor may name one of them.
const PlatformPrefix = "bai-"

// AnyNamespace is the key of the Allowlist that holds for every namespace.
const AnyNamespace = "*"

// An Allowlist says which objects of the cluster the descriptors of a namespace may
// name. It never allows an object of the platform.
type Allowlist struct {
	// names of Secrets, for env.secrets, env.secret_files and env.image_pull_secret; * stands for any text
	Secrets []string `toml:"secrets"`
	Claims  []string `toml:"claims"` // names of PersistentVolumeClaims, for volumes.claim; * stands for any text
	// key=value: Secrets and claims with one of these labels too. The executor looks at their labels at launch, for which it needs the verb
	// get on both kinds
	Labels []string `toml:"labels"`

	// names of priority classes, for hardware.priority; * stands for any text, and never for the cluster's own classes
	Priorities []string `toml:"priorities"`
	Queues     []string `toml:"queues"` // names of queues of Kueue or volcano, for hardware.queue; * stands for any text

	// rights of pods: host_network, mtu and rdma, for these keys of network, and privileged, for env.privileged. They need
	// executor.pods.security = "privileged"
	Rights []string `toml:"rights"`
}

// The rights of pods that settings can allow.
const (
	RightHostNetwork = "host_network"
	RightMTU         = "mtu"
	RightRDMA        = "rdma"
	RightPrivileged  = "privileged"
)

// Rights returns the rights of pods that settings can allow.
func Rights() []string {
	return []string{RightHostNetwork, RightMTU, RightRDMA, RightPrivileged}
}

// Allowlists are the Allowlist of each namespace, by its name.
type Allowlists map[string]Allowlist

// Check names the entries that can never allow anything.
func (a Allowlists) Check() error {
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(a)) {
		errs = append(errs, a[namespace].check(namespace))
	}
	return errors.Join(errs...)
}

func (l Allowlist) check(namespace string) error {
	var errs []error
	for _, pattern := range slices.Concat(l.Secrets, l.Claims) {
		if strings.HasPrefix(pattern, PlatformPrefix) || !isNamePattern(pattern) {
			errs = append(errs,
				fmt.Errorf(
					"%q: %q is not the name of an object of yours, nor one with *: write lower-case letters, digits, - and ., and no name that begins with %s", namespace, pattern, PlatformPrefix))
		}
	}
	for _, pattern := range slices.Concat(l.Priorities, l.Queues) {
		if !isNamePattern(pattern) {
			errs = append(errs, fmt.Errorf("%q: %q is not the name of a priority class or queue, nor one with *: write lower-case letters, digits, \".\" and \"-\"", namespace, pattern))
		}
	}
	for _, right := range l.Rights {
		if !slices.Contains(Rights(), right) {
			errs = append(errs, fmt.Errorf("%q: %q is not a right of pods: use %s", namespace, right, strings.Join(Rights(), ", ")))
		}
	}
	for _, label := range l.Labels {
		if key, _, ok := strings.Cut(label, "="); !ok || key == "" {
			errs = append(errs, fmt.Errorf("%q: the label %q is not key=value", namespace, label))
		}
	}
	return errors.Join(errs...)
}

// isNamePattern reports whether a text is the name of an object, or one with *.
func isNamePattern(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.*") == ""
}

// A ReferenceKind is a kind of object that a descriptor can name, or RefRight.
type ReferenceKind string

// The kinds.
const (
	RefSecret ReferenceKind = "Secret"
	RefClaim  ReferenceKind = "PersistentVolumeClaim"

	RefPriority ReferenceKind = "PriorityClass"
	RefQueue    ReferenceKind = "queue" // a LocalQueue of Kueue, or a Queue of volcano

	RefRight ReferenceKind = "right" // of pods on their nodes: no object, but settings allow it in the same way
)

// A Reference is an object of the cluster that a descriptor names.
type Reference struct {
	Path string // of the key that names it
	Kind ReferenceKind
	Name string

	Pull bool // the Secret only opens the registry of an image

	Line, Column int // in the manifest, if the path is ManifestKey
}

// References are the objects of the cluster that d names, in the order of the
// language.
func (d *Descriptor) References() []Reference {
	all := slices.Concat(d.Hardware.references(), d.Network.references(), d.Env.references("env"))
	for i, v := range d.Volumes {
		if v.Claim != "" {
			all = append(all, Reference{Path: fmt.Sprintf("volumes[%d].claim", i), Kind: RefClaim, Name: v.Claim})
		}
	}
	if d.Server != nil {
		all = append(all, d.Server.Env.references("server.env")...)
	}
	return append(all, d.manifestReferences()...)
}

func (h Hardware) references() []Reference {
	var all []Reference
	if h.Priority != "" {
		all = append(all, Reference{Path: "hardware.priority", Kind: RefPriority, Name: h.Priority})
	}
	if h.Queue != "" {
		all = append(all, Reference{Path: "hardware.queue", Kind: RefQueue, Name: h.Queue})
	}
	return all
}

func (n Network) references() []Reference {
	var all []Reference
	for _, right := range []struct {
		name string
		used bool
	}{{RightHostNetwork, n.HostNetwork}, {RightMTU, n.MTU > 0}, {RightRDMA, n.RDMA != nil}} {
		if right.used {
			all = append(all, Reference{Path: "network." + right.name, Kind: RefRight, Name: right.name})
		}
	}
	return all
}

func (e Env) references(at string) []Reference {
	var all []Reference
	if e.Privileged {
		all = append(all, Reference{Path: at + ".privileged", Kind: RefRight, Name: RightPrivileged})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Secrets)) {
		all = append(all, Reference{Path: at + ".secrets." + decode.Quoted(name), Kind: RefSecret, Name: e.Secrets[name].Name})
	}
	for _, file := range slices.Sorted(maps.Keys(e.SecretFiles)) {
		all = append(all, Reference{Path: at + ".secret_files." + decode.Quoted(file), Kind: RefSecret, Name: e.SecretFiles[file].Name})
	}
	if e.ImagePullSecret != "" {
		all = append(all, Reference{Path: at + ".image_pull_secret", Kind: RefSecret, Name: e.ImagePullSecret, Pull: true})
	}
	return all
}

// Reserved reports whether the object is the platform's.
func (r Reference) Reserved() bool {
	return strings.HasPrefix(r.Name, PlatformPrefix) && (r.Kind == RefSecret || r.Kind == RefClaim)
}

// Labeled reports whether the labels of the object may allow descriptors to name it.
func (r Reference) Labeled() bool { return r.Kind == RefSecret || r.Kind == RefClaim }

// Allows reports whether descriptors of a namespace may name an object, by its
// name.
func (a Allowlists) Allows(namespace string, r Reference) bool {
	return !r.Reserved() && slices.ContainsFunc(a.of(namespace),
		func(l Allowlist) bool { return slices.ContainsFunc(l.names(r.Kind), r.matches) })
}

// Labels are the labels that allow the descriptors of a namespace to name an object; one
// of them suffices.
func (a Allowlists) Labels(namespace string) []string {
	var all []string
	for _, l := range a.of(namespace) {
		all = append(all, l.Labels...)
	}
	return all
}

func (a Allowlists) of(namespace string) []Allowlist {
	return []Allowlist{a[AnyNamespace], a[namespace]}
}

func (l Allowlist) names(k ReferenceKind) []string {
	switch k {
	case RefClaim:
		return l.Claims
	case RefPriority:
		return l.Priorities
	case RefQueue:
		return l.Queues
	case RefRight:
		return l.Rights
	case RefSecret:
	}
	return l.Secrets
}

// settingOf returns the key of the names of a kind in an Allowlist.
func settingOf(k ReferenceKind) string {
	return map[ReferenceKind]string{
		RefSecret: "secrets", RefClaim: "claims", RefPriority: "priorities",
		RefQueue: "queues", RefRight: "rights",
	}[k]
}

// clusterClasses begins the names of the cluster's own priority classes, whose pods evict
// all others.
const clusterClasses = "system-"

func (r Reference) matches(pattern string) bool {
	if r.Kind == RefPriority && strings.HasPrefix(r.Name, clusterClasses) && r.Name != pattern {
		return false
	}
	ok, err := path.Match(pattern, r.Name) // no name of an object has a slash
	return ok && err == nil
}

// Refusal is the reason why descriptors of a namespace may not name an object, and the
// remedy. The message is empty if they may, or if the object's labels decide.
func (a Allowlists) Refusal(namespace string, r Reference) (message, remedy string) {
	switch {
	case r.Reserved():
		return fmt.Sprintf("%q is a name of the platform's own objects, which begin with %s", r.Name,
			PlatformPrefix), fmt.Sprintf("name a %s of yours", r.Kind)
	case a.Allows(namespace, r), r.Labeled() && len(a.Labels(namespace)) > 0:
		return "", ""
	}
	message = fmt.Sprintf("descriptors of the namespace %q may not name the %s %q", namespace, r.Kind, r.Name)
	if r.Kind == RefRight {
		message = fmt.Sprintf("pods of the namespace %q may not have the right %s", namespace, r.Name)
	}
	return message,
		fmt.Sprintf("the platform's settings have to allow it: [executor.pods.allow.%s] %s = [%q]",
			strconv.Quote(namespace), settingOf(r.Kind), r.Name)
}
