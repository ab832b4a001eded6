package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor/transpile"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
)

// Holder is one attempt of a run: it waits for a slot, or holds one.
type Holder struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

// key is that of the holder's plan.
func (h Holder) key() string { return fmt.Sprintf("%s/%d", h.Run, h.Attempt) }

// Waiting is a document of the queue.
type Waiting struct {
	Run  event.Fetched `json:"run"`
	Pods int           `json:"pods"`
}

// Place is what waits, and the key of its document. Keys are in the order of
// the queue.
type Place struct {
	Waiting

	Key string
}

func (w Waiting) holder() Holder { return Holder{Run: w.Run.Run, Attempt: w.Run.Attempt} }

// queueKey is the key of an attempt's document in the queue: those of higher
// priority come first, among these the attempts that follow another, then who
// was submitted first, which a run's ID tells.
func queueKey(priority int, h Holder) string {
	first := 1
	if h.Attempt > 1 {
		first = 0
	}
	return fmt.Sprintf("%04d/%d/%s/%d", MaxPriority-priority, first, h.Run, h.Attempt)
}

// Ledger is the one document that says who holds a slot.
type Ledger struct {
	Fence   int64   `json:"fence"` // of the lease under which somebody was last admitted
	Entries []Entry `json:"entries"`
}

// Entry is an attempt that holds a slot, from its admission until its objects
// are gone.
type Entry struct {
	Holder

	Queue    string `json:"queue"` // key of its document in the queue, which stays until there is a plan
	Pods     int    `json:"pods"`
	Shares   string `json:"shares,omitempty"` // limits that it counts under, one a line
	Launched bool   `json:"launched,omitempty"`
	Placed   bool   `json:"placed,omitempty"`
	Ending   bool   `json:"ending,omitempty"`
}

// unplaced reports whether the entry is a gang that may not have all its nodes.
func (e Entry) unplaced() bool { return e.Pods > 1 && !e.Placed && !e.Ending }

func (l Ledger) holds(h Holder) bool {
	_, ok := l.entry(h)
	return ok
}

func (l Ledger) entry(h Holder) (Entry, bool) {
	for _, e := range l.Entries {
		if e.Holder == h {
			return e, true
		}
	}
	return Entry{}, false
}

// ledgerKey is the key of the one ledger.
const ledgerKey = "slots"

// Plan is the document that decides, by who creates it, what becomes of an
// attempt: its objects are created, once, or it is never launched. It is
// written once and stays. It holds no secret value.
type Plan struct {
	// Never says that the attempt is not launched. Last is then what was said
	// of its run, if the executor is who said it.
	Never bool            `json:"never,omitempty"`
	Last  *event.Finished `json:"last,omitempty"`

	Run     event.Fetched `json:"run"`
	Scope   string        `json:"scope,omitempty"`
	Job     string        `json:"job,omitempty"`
	Objects []object      `json:"objects,omitempty"`
	Jobs    int           `json:"jobs,omitempty"` // among the objects; of what has several roles, as many

	// Images are the answers of registries that the objects were made from. The
	// attempts that follow are made from the same.
	Images []cluster.Image `json:"images,omitempty"`

	Keep            descriptors.Keep `json:"keep,omitzero"` // what the descriptor says of the objects after the end
	Retries         int              `json:"retries,omitempty"`
	PendingDeadline time.Duration    `json:"pending_deadline,omitempty"`
}

// last returns what there is to say again of an attempt that has this plan.
func (p Plan) last() []event.Event {
	if p.Last == nil {
		return nil
	}
	return []event.Event{*p.Last}
}

func (p Plan) ref() cluster.Ref {
	return cluster.Ref{Run: p.Run.Run, Attempt: p.Run.Attempt, Scope: p.Scope, Job: p.Job}
}

// ends reports whether an object is the one whose end ends the run: the only one
// of a kind that ends which has the name of the plan's Job.
func (p Plan) ends(o cluster.Object) bool {
	switch o.(type) {
	case *batchv1.Job, *mpijob.Job:
		return o.GetName() == p.Job
	}
	return false
}

// planOf returns the document for a plan.
func planOf(run event.Fetched, p transpile.Plan) Plan {
	doc := Plan{Run: run, Scope: p.Scope, Job: p.Job, Retries: p.Retries, PendingDeadline: p.PendingDeadline, Keep: p.Keep}
	for _, o := range p.Objects {
		switch o := o.(type) {
		case *batchv1.Job:
			doc.Jobs++
		case *mpijob.Job:
			doc.Jobs += len(o.Spec.ReplicaSpecs)
		}
		doc.Objects = append(doc.Objects, object{o})
	}
	return doc
}

// objects returns the objects of the plan, with secrets in place of the empty
// ones of their names.
func (p Plan) objects(secrets []*corev1.Secret) []cluster.Object {
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

// object is an object as a plan keeps it: of its own type where it is one that
// plans have, whatever else unstructured.
type object struct{ cluster.Object }

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return json.Marshal(o.Object) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(text []byte) error {
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

// priority returns that of a run with such labels: the highest that settings
// give one of them.
func (s Settings) priority(labels map[string]string) int {
	priority, found := 0, false
	for label, p := range s.Priorities {
		name, value, _ := strings.Cut(label, "=")
		if have, ok := labels[name]; ok && have == value && (!found || p > priority) {
			priority, found = p, true
		}
	}
	return priority
}
