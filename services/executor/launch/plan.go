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

// Plan is the document that decides about an attempt: its objects are created once, or
// it is never launched. The first process to create the document decides. The document
// never changes and has no secret values.
type Plan struct {
	// NoLaunch means that the attempt is never launched. FinalEvent is then the end of
	// its run, if the executor published one.
	NoLaunch   bool            `json:"never,omitempty"`
	FinalEvent *event.Finished `json:"last,omitempty"`

	Run     event.Fetched `json:"run"`
	Scope   string        `json:"scope,omitempty"`
	Job     string        `json:"job,omitempty"`
	Objects []planObject  `json:"objects,omitempty"`
	// number of Jobs among the objects, and of others that end; an MPIJob counts once per role
	Jobs int `json:"jobs,omitempty"`

	// Images are the registry answers that the objects were made from. Later attempts
	// use the same answers.
	Images []cluster.Image `json:"images,omitempty"`

	Keep            descriptors.Keep `json:"keep,omitzero"` // the descriptor's rule for the objects after the end
	Retries         int              `json:"retries,omitempty"`
	PendingDeadline time.Duration    `json:"pending_deadline,omitempty"`
}

// FinalEvents returns the events to publish again for an attempt with this plan.
func (p Plan) FinalEvents() []event.Event {
	if p.FinalEvent == nil {
		return nil
	}
	return []event.Event{*p.FinalEvent}
}

// Ref returns a reference to the objects of the plan.
func (p Plan) Ref() cluster.Ref {
	return cluster.Ref{Run: p.Run.Run, Attempt: p.Run.Attempt, Scope: p.Scope, Job: p.Job}
}

// isMainJob reports whether an object is the Job, MPIJob or object of a manifest whose end
// ends the run, which has the name of the plan's Job.
func (p Plan) isMainJob(o cluster.Object) bool {
	switch o.(type) {
	case *batchv1.Job, *mpijob.Job:
		return o.GetName() == p.Job
	case *unstructured.Unstructured:
		return o.GetName() == p.Job && o.GetAnnotations()[cluster.AnnotationSucceeded] != ""
	}
	return false
}

// newPlan returns the plan for a workload.
func newPlan(run event.Fetched, p transpile.Workload) Plan {
	doc := Plan{Run: run, Scope: p.Scope, Job: p.Job, Retries: p.Retries, PendingDeadline: p.PendingDeadline, Keep: p.Keep}
	for _, o := range p.Objects {
		switch o := o.(type) {
		case *batchv1.Job:
			doc.Jobs++
		case *mpijob.Job:
			doc.Jobs += len(o.Spec.ReplicaSpecs)
		case *unstructured.Unstructured:
			if o.GetAnnotations()[cluster.AnnotationSucceeded] != "" {
				doc.Jobs++
			}
		}
		doc.Objects = append(doc.Objects, planObject{o})
	}
	return doc
}

// objectsWithSecrets returns the objects of the plan, with secrets in place of the
// empty Secrets with the same names.
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

// planObject is an object in the JSON of a plan. Known kinds are read into their own
// type, all others into unstructured.Unstructured.
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
