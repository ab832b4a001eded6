package kube

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// deniedError names the permission that this process lacks.
type deniedError struct {
	Verb, Resource, Group, Scope string // Scope is empty for a permission in the whole cluster
	Detail                       string // the API server's own
}

// Error implements error.
func (e *deniedError) Error() string {
	where := "in the whole cluster"
	if e.Scope != "" {
		where = fmt.Sprintf("in the namespace %q", e.Scope)
	}
	return fmt.Sprintf("the platform may not %s %s of the API group %q %s: grant its service account the verb %q on %q by a role, as deploy/kubernetes does (%s)",
		e.Verb, e.Resource, e.Group, where, e.Verb, e.Resource, e.Detail)
}

// forbiddenPattern matches the message of the authorizer.
var forbiddenPattern = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// permissionError returns the missing permission in err, nil if err has another cause: quotas and webhooks return Forbidden too.
func permissionError(err error) *deniedError {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	found := forbiddenPattern.FindStringSubmatch(err.Error())
	if found == nil {
		return nil
	}
	return &deniedError{Verb: found[1], Resource: found[2], Group: found[3], Scope: found[4], Detail: err.Error()}
}

// wrapError adds the failed action to err, and the permission if one is missing.
func wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if p := permissionError(err); p != nil {
		return fmt.Errorf("%s: %w", doing, p)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// createError translates the error of a creation: the object exists, it is refused for good, or the result is unknown.
func createError(object string, err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: %w", object, cluster.ErrExists)
	}
	if !isPermanent(err) {
		return fmt.Errorf("create %s: %w", object, err)
	}
	words := err.Error()
	if p := permissionError(err); p != nil {
		words = p.Error()
	}
	return &cluster.RefusedError{Object: object, Class: failureClass(err), Message: words}
}

// failureClass returns whose fault a refused object is. It is the platform's if the platform lacks the permission to create the object, if
// its settings name a namespace, kind or priority class that does not exist, or if the object has a field that the API server does not
// know. Else it is that of the requester.
func failureClass(err error) event.Class {
	switch text := err.Error(); {
	case permissionError(err) != nil, apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause),
		strings.Contains(text, "no PriorityClass with name"), strings.Contains(text, "strict decoding error"):
		return event.ClassPlatform
	}
	return event.ClassUser
}

// Codes of answers.
const (
	badRequest      = 400
	unauthorized    = 401
	requestTimeout  = 408
	conflict        = 409
	tooManyRequests = 429
	serverError     = 500
)

// isPermanent reports whether the API server, or a webhook, will give the same answer again.
func isPermanent(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case unauthorized, requestTimeout, conflict, tooManyRequests:
		return false
	default:
		return code >= badRequest && code < serverError
	}
}

// resourceOf is where objects of a kind lie.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

// deletableKinds returns the kinds of objects that Delete lists by label. Secrets are not among them: the platform has no permission to
// read Secrets.
func deletableKinds(more []string) []schema.GroupVersionResource {
	kinds := []schema.GroupVersionResource{configMaps(), {Version: "v1", Resource: "services"}, volumeClaims(), networkPolicies()}
	for _, name := range more {
		if gvr, _ := schema.ParseResourceArg(name); gvr != nil {
			kinds = append(kinds, *gvr)
		}
	}
	return kinds
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// isBuiltIn reports whether every cluster has a kind, so that its garbage collector deletes objects of the kind with their owner, and no
// deletion waits for dependents.
func isBuiltIn(kind schema.GroupVersionResource) bool {
	return kind.Group == "" || kind == networkPolicies()
}

// networkPolicies are those of runs with several pods.
func networkPolicies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
}

// volumeClaims are the claims of volumes that are made for runs.
func volumeClaims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
}

// attempt names one attempt of a run.
type attempt struct{ scope, run, number string }

func attemptOf(o metav1.Object) (attempt, bool) {
	l := o.GetLabels()
	at := attempt{o.GetNamespace(), l[cluster.LabelRun], l[cluster.LabelAttempt]}
	return at, at.run != "" && at.number != ""
}

func attemptOfRef(r cluster.Ref) attempt { return attempt{r.Scope, r.Run, strconv.Itoa(r.Attempt)} }

func (a attempt) selector() string {
	return labels.SelectorFromSet(labels.Set{cluster.LabelRun: a.run, cluster.LabelAttempt: a.number}).String()
}

func (a attempt) key() string { return a.scope + "/" + a.run + "/" + a.number }

// ref names the attempt by a Job.
func (a attempt) ref(job, uid string) cluster.Ref {
	number, _ := strconv.Atoi(a.number) // every object of the platform has a number
	return cluster.Ref{Run: a.run, Attempt: number, Scope: a.scope, Job: job, UID: uid}
}

// snapshotOf returns the snapshot of an attempt, and whether it has a Job or pods. A ref that is not nil names the main Job. Else the main
// Job, whose end ends the run, is the one with the shortest name: the names of the others extend that of the attempt.
func snapshotOf(at attempt, ref *cluster.Ref, jobs []*batchv1.Job, pods []*corev1.Pod) (cluster.Snapshot, bool) {
	seen := cluster.Snapshot{Ref: at.ref("", "")}
	if ref != nil {
		seen.Ref = *ref
	}
	if job := mainJob(ref, jobs); job != nil {
		seen.Job, seen.Ref = job, at.ref(job.Name, string(job.UID))
	}
	for _, j := range slices.SortedFunc(slices.Values(jobs), compareNameLength) {
		if j.Name != seen.Ref.Job {
			seen.Others = append(seen.Others, *j)
		}
	}
	for _, p := range pods {
		if seen.Ref.Job == "" || ownerName(p) != seen.Ref.Job || seen.Ref.UID == "" || ownerUID(p) == seen.Ref.UID || ownerUID(p) == "" {
			seen.Pods = append(seen.Pods, *p)
		}
	}
	slices.SortFunc(seen.Pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	// Two objects may select one pod.
	seen.Pods = slices.CompactFunc(seen.Pods, func(a, b corev1.Pod) bool { return a.Name == b.Name && a.UID == b.UID })
	if seen.Ref.Job == "" {
		seen.Ref.Job, seen.Ref.UID = ownerOfPods(seen.Pods)
	}
	return seen, seen.Job != nil || len(seen.Pods) > 0
}

// mainJob returns the Job that ref names, or the one whose end ends the run if ref is nil.
func mainJob(ref *cluster.Ref, jobs []*batchv1.Job) *batchv1.Job {
	if ref != nil {
		for _, j := range jobs {
			if j.Name == ref.Job && (ref.UID == "" || string(j.UID) == ref.UID) {
				return j
			}
		}
		return nil
	}
	if len(jobs) == 0 {
		return nil
	}
	return slices.MinFunc(jobs, compareNameLength)
}

func compareNameLength(a, b *batchv1.Job) int {
	return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
}

// ownerName is the name of the Job that a pod is of.
func ownerName(p *corev1.Pod) string { return p.Labels[batchv1.JobNameLabel] }

func ownerUID(p *corev1.Pod) string {
	if c := metav1.GetControllerOf(p); c != nil {
		return string(c.UID)
	}
	return ""
}

// ownerOfPods returns the Job of pods whose Job is gone.
func ownerOfPods(pods []corev1.Pod) (job, uid string) {
	for i := range pods {
		if name := ownerName(&pods[i]); job == "" || len(name) < len(job) {
			job, uid = name, ownerUID(&pods[i])
		}
	}
	return job, uid
}

// isOverdue reports whether a pod that is being deleted still exists for longer than timeout after its deadline.
func isOverdue(p *corev1.Pod, now time.Time, timeout time.Duration) bool {
	return p.DeletionTimestamp != nil && now.After(cluster.DeletionDeadline(*p).Add(timeout))
}

// needsStop reports whether a Job has neither ended nor been stopped or deleted.
func needsStop(j *batchv1.Job) bool {
	if j.DeletionTimestamp != nil || metav1.GetControllerOf(j) != nil || j.Annotations[AnnotationStopped] != "" {
		return false
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget} {
		if _, ok := cluster.Condition(j, t); ok {
			return false
		}
	}
	return true
}

// isInformative reports whether an event tells more than the status of its object.
func isInformative(e *corev1.Event) bool {
	routine := []string{"Scheduled", "Created", "Started", "Killing", "SuccessfulCreate", "SuccessfulDelete", "Completed"}
	return e.Type != corev1.EventTypeNormal || !slices.Contains(routine, e.Reason)
}

// sortEvents sorts events, the oldest first.
func sortEvents(events []corev1.Event) []corev1.Event {
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(eventTime(&a).Compare(eventTime(&b).Time), strings.Compare(a.Name, b.Name))
	})
	return events
}

// eventTime returns the last time that an event was seen, from any of the fields in which writers set it.
func eventTime(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time{Time: e.EventTime.Time}
	}
	return e.CreationTimestamp
}
