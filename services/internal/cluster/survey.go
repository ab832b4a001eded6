package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Surveyor tells, before a run, what a cluster has.
type Surveyor interface {
	// Survey looks at what q asks for, as it is now, and changes nothing. What
	// it may not see, or cannot, is Unknown in its answer. An error says that
	// the cluster cannot be asked at all.
	Survey(ctx context.Context, q SurveyRequest) (Survey, error)
}

// SurveyRequest is what somebody wants to know of a cluster.
type SurveyRequest struct {
	Scope           string                    // Kubernetes namespace
	Objects         []Object                  // of a run, as they would be created
	Permissions     []Permission              // that the platform needs
	Kinds           []schema.GroupVersionKind // that the cluster must have, of any version where none is named
	Secrets         []SecretKey               // that the run names and does not bring
	PriorityClasses []string                  // of priority
	StorageClasses  []string                  // classes of it; empty text is the one that is the default
	Programs        []string                  // that the run's containers begin with
}

// Permission is a verb on one kind of object, in the namespace of an inquiry.
type Permission struct {
	Account               string // whose: empty means who asks
	Verb, Group, Resource string // Resource may have a part behind a slash: pods/log
}

// SecretKey names a value in a Secret; without a Key the Secret as a whole.
type SecretKey struct{ Name, Key string }

// Answer is yes, no, or that nobody could tell.
type Answer struct {
	Yes           bool
	UnknownReason string // why nobody could tell; empty where Yes tells
	Detail        string // what the cluster says of it; may be empty
}

// Survey is what a cluster has of what was asked for, and what else there is
// that decides whether a run can begin.
type Survey struct {
	Name         string // what cluster it is, for people
	LocalMachine bool   // it is this machine: it runs no images, has one node, and nobody but its owner says what is where

	Permissions     map[Permission]Answer
	Kinds           map[schema.GroupVersionKind]Answer
	Secrets         map[SecretKey]Answer
	PriorityClasses map[string]Answer
	StorageClasses  map[string]Answer
	Programs        map[string]Answer // of the machine; none where images bring them
	Refusals        []RefusedError    // of objects that the cluster is known not to take

	Nodes               []corev1.Node
	NodesUnknownReason  string // why nobody could see them
	Autoscaler          string // what adds nodes when pods need them; empty where none is known of
	Quotas              []corev1.ResourceQuota
	QuotasUnknownReason string // why nobody could see them
}
