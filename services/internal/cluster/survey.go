package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Surveyor checks, before a run, which resources a cluster has.
type Surveyor interface {
	// Survey checks the items of q in their current state, and changes nothing. An item that it has no permission to read, or cannot read,
	// is unknown in the answer. An error means that the cluster cannot be reached at all.
	Survey(ctx context.Context, q SurveyRequest) (Survey, error)
}

// SurveyRequest lists the items to check in a cluster.
type SurveyRequest struct {
	Scope           string                    // Kubernetes namespace
	Objects         []Object                  // of a run, as they would be created
	Permissions     []Permission              // that the platform needs
	Kinds           []schema.GroupVersionKind // that the cluster must have, of any version if none is named
	Secrets         []SecretKey               // that the run names and does not create
	PriorityClasses []string                  // of priority
	Networks        []string                  // of Multus, as name (of NetworksNamespace) or namespace/name
	StorageClasses  []string                  // names of storage classes; an empty name is the default class
	Programs        []string                  // that the run's containers begin with
}

// Permission is a verb on one kind of object, in the namespace of an inquiry.
type Permission struct {
	Account               string // empty means the account of the caller
	Verb, Group, Resource string // Resource may have a part behind a slash: pods/log
}

// SecretKey names a value in a Secret; without a Key the Secret as a whole.
type SecretKey struct{ Name, Key string }

// Answer is yes, no, or unknown.
type Answer struct {
	Yes           bool
	UnknownReason string // why the answer is unknown; empty if Yes holds
	Detail        string // the cluster's explanation; may be empty
}

// Survey has the answers for the items of a request, and the capacity of the cluster that decides whether a run can begin.
type Survey struct {
	Name         string // name of the cluster, for people
	LocalMachine bool   // the cluster is this machine: it runs no images, has one node, and only its owner knows its programs

	Permissions     map[Permission]Answer
	Kinds           map[schema.GroupVersionKind]Answer
	Secrets         map[SecretKey]Answer
	PriorityClasses map[string]Answer
	Networks        map[string]Answer
	StorageClasses  map[string]Answer
	Programs        map[string]Answer // of the machine; none if images bring them
	Refusals        []RefusedError    // of objects that the cluster is sure to refuse

	Nodes               []corev1.Node
	NodesUnknownReason  string // why nodes could not be listed
	Autoscaler          string // name of the autoscaler that adds nodes when pods need them; empty if none was found
	Quotas              []corev1.ResourceQuota
	QuotasUnknownReason string // why quotas could not be listed
}
