package launch

import (
	"encoding/json"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Plan is the document that decides about an attempt: its objects are created, once, or
// it is never launched. The first process to create it decides; it is written once and
// stays. It holds no secret value.
type Plan struct {
	// NoLaunch says that the attempt is not launched. FinalEvent is then the end of its
	// run, where it is the executor that published one.
	NoLaunch   bool            `json:"never,omitempty"`
	FinalEvent *event.Finished `json:"last,omitempty"`

	Run     event.Fetched `json:"run"`
	Scope   string        `json:"scope,omitempty"`
	Job     string        `json:"job,omitempty"`
	Objects []planObject  `json:"objects,omitempty"`
	Jobs    int           `json:"jobs,omitempty"` // among the objects; of what has several roles, as many

	// Images are the answers of registries that the objects were made from. The
	// attempts that follow are made from the same.
	Images []cluster.Image `json:"images,omitempty"`

	Keep            descriptors.Keep `json:"keep,omitzero"` // what the descriptor says of the objects after the end
	Retries         int              `json:"retries,omitempty"`
	PendingDeadline time.Duration    `json:"pending_deadline,omitempty"`
}

// FinalEvents returns the events to publish again for an attempt that has this plan.
func (p Plan) FinalEvents() []event.Event {
	if p.FinalEvent == nil {
		return nil
	}
	return []event.Event{*p.FinalEvent}
}

// Ref names the objects of the plan.
func (p Plan) Ref() cluster.Ref {
	return cluster.Ref{Run: p.Run.Run, Attempt: p.Run.Attempt, Scope: p.Scope, Job: p.Job}
}

// isMainJob reports whether an object is the one whose end ends the run: the only one
// of a kind that ends which has the name of the plan's Job.
func (p Plan) isMainJob(o cluster.Object) bool {
	switch o.(type) {
	case *batchv1.Job, *mpijob.Job:
		return o.GetName() == p.Job
	}
	return false
}

// newPlan returns the document for a plan.
func newPlan(run event.Fetched, p transpile.Workload) Plan {
	doc := Plan{Run: run, Scope: p.Scope, Job: p.Job, Retries: p.Retries, PendingDeadline: p.PendingDeadline, Keep: p.Keep}
	for _, o := range p.Objects {
		switch o := o.(type) {
		case *batchv1.Job:
			doc.Jobs++
		case *mpijob.Job:
			doc.Jobs += len(o.Spec.ReplicaSpecs)
		}
		doc.Objects = append(doc.Objects, planObject{o})
	}
	return doc
}

// objectsWithSecrets returns the objects of the plan, with secrets in place of the empty
// ones of their names.
func (p Plan) objectsWithSecrets(secrets []*corev1.Secret) []cluster.Object {
	objects := make([]cluster.Object, 0, len(p.Objects))
	for _, o := range p.Objects {
		if _, empty := o.Object.(*corev1.Secret); empty {
			if i := slices.IndexFunc(secrets, func(s *corev1.Secret) bool { return s.Name == o.GetName() }); i >= 0 {
				o.Object = secrets[i]
			}
		}
		objects = append(objects, o.Object)
	}
	return objects
}

// planObject is an object as a plan keeps it: of its own type where it is one that
// plans have, whatever else unstructured.
type planObject struct{ cluster.Object }

// MarshalJSON implements json.Marshaler.
func (o planObject) MarshalJSON() ([]byte, error) { return json.Marshal(o.Object) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *planObject) UnmarshalJSON(text []byte) error {
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + "/" + kind.Kind {
	case "batch/v1/Job":
		o.Object = &batchv1.Job{}
	case mpijob.APIVersion + "/" + mpijob.Kind:
		o.Object = &mpijob.Job{}
	case "v1/ConfigMap":
		o.Object = &corev1.ConfigMap{}
	case "v1/Secret":
		o.Object = &corev1.Secret{}
	case "v1/Service":
		o.Object = &corev1.Service{}
	case "networking.k8s.io/v1/NetworkPolicy":
		o.Object = &networkingv1.NetworkPolicy{}
	case "v1/PersistentVolumeClaim":
		o.Object = &corev1.PersistentVolumeClaim{}
	default:
		o.Object = &unstructured.Unstructured{}
	}
	return json.Unmarshal(text, o.Object)
}
