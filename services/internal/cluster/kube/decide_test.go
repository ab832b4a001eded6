package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestVerdict(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	rbac := errors.New(`User "system:serviceaccount:a:b" cannot create resource "jobs" in API group "batch" in the namespace "s"`)
	ending := apierrors.NewForbidden(jobs, "r", errors.New("namespace s is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const refused, ours, exists, away = "refused: user", "refused: platform", "exists", "away"
	for name, row := range map[string]struct {
		err         error
		want, words string
	}{
		"one of that name is there":                         {apierrors.NewAlreadyExists(jobs, "r"), exists, ""},
		"what is invalid is refused":                        {apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "r", nil), refused, "is invalid"},
		"what a webhook cannot read is refused":             {apierrors.NewBadRequest("no such queue"), refused, "no such queue"},
		"what the API server does not know is refused":      {apierrors.NewBadRequest("strict decoding error: unknown field"), ours, "unknown field"},
		"what a quota forbids is refused":                   {apierrors.NewForbidden(jobs, "r", errors.New("exceeded quota: q")), refused, "exceeded quota: q"},
		"what a webhook denies is refused":                  {apierrors.NewForbidden(jobs, "r", errors.New(`admission webhook "w" denied the request: no`)), refused, `webhook "w" denied the request: no`},
		"a missing permission refuses, and is named":        {apierrors.NewForbidden(jobs, "", rbac), ours, `grant its service account the verb "create" on "jobs"`},
		"a namespace that is not there refuses":             {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "s"), ours, "not found"},
		"a namespace that goes refuses":                     {ending, ours, "is being terminated"},
		"a kind that is not there refuses":                  {apierrors.NewGenericServerResponse(404, "post", jobs, "", "", 0, true), ours, "could not find the requested resource"},
		"a class of priority that is not there refuses":     {apierrors.NewForbidden(jobs, "r", errors.New("no PriorityClass with name high was found")), ours, "PriorityClass with name high"},
		"what is too large is refused":                      {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), refused, "limit is 3145728"},
		"a webhook that cannot be asked may be asked again": {apierrors.NewInternalError(errors.New("failed calling webhook")), away, "failed calling webhook"},
		"too many requests may be fewer later":              {apierrors.NewTooManyRequests("slow down", 1), away, "slow down"},
		"a server that is overloaded may be less so":        {apierrors.NewServerTimeout(jobs, "create", 1), away, ""},
		"a token that ran out is replaced":                  {apierrors.NewUnauthorized("expired"), away, "expired"},
		"a conflict may be over later":                      {apierrors.NewConflict(jobs, "r", errors.New("changed")), away, "changed"},
		"no connection":                                     {&url.Error{Op: "Post", URL: "https://x", Err: errors.New("connection refused")}, away, "connection refused"},
		"no time":                                           {context.DeadlineExceeded, away, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			err := kube.CreateError("Job r", row.err)
			var why *cluster.RefusedError
			got := away
			switch {
			case errors.As(err, &why):
				got = "refused: " + string(why.Class)
			case errors.Is(err, cluster.ErrExists):
				got = exists
			}
			if got != row.want || !strings.Contains(err.Error(), row.words) || !strings.Contains(err.Error(), "Job r") {
				t.Errorf("%s: %v, want %s with %q", got, err, row.want, row.words)
			}
		})
	}
	if err := kube.CreateError("Job r", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// TestARefusalSaysWhoseFaultItIs has a server answer with each kind of refusal.
func TestARefusalSaysWhoseFaultItIs(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, row := range map[string]struct {
		scope  string
		answer *apierrors.StatusError
		want   event.Class
	}{
		"the platform's account may not":              {"s", apierrors.NewForbidden(jobs, "", errors.New(`User "x" cannot create resource "jobs" in API group "batch" in the namespace "s"`)), event.ClassPlatform},
		"the platform's namespace is not there":       {"s", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "s"), event.ClassPlatform},
		"the platform looks at another namespace":     {"other", nil, event.ClassPlatform},
		"a webhook wants something else of the user":  {"s", apierrors.NewForbidden(jobs, "r", errors.New(`admission webhook "w" denied the request: no`)), event.ClassUser},
		"what the user wrote is invalid in a cluster": {"s", apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "r", nil), event.ClassUser},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(row.answer.ErrStatus.Code))
				status := row.answer.ErrStatus
				status.APIVersion, status.Kind = "v1", "Status"
				_ = json.NewEncoder(w).Encode(status)
			}))
			t.Cleanup(server.Close)
			config := filepath.Join(t.TempDir(), "config")
			text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\n", server.URL)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := open(t, kube.Settings{Kubeconfig: config, Namespace: "s"}).Create(t.Context(), job(row.scope, "r"))
			if refused, ok := errors.AsType[*cluster.RefusedError](err); !ok || refused.Class != row.want {
				t.Errorf("%v, want a refusal that is the fault of the %s", err, row.want)
			}
		})
	}
}

func jobOf(name, uid string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

func podOf(name, job, uid string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{batchv1.JobNameLabel: job}}}
	if uid != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, UID: types.UID(uid), Controller: &yes}}
	}
	return p
}

func TestCompose(t *testing.T) {
	for name, row := range map[string]struct {
		known    *cluster.Ref
		jobs     []*batchv1.Job
		pods     []*corev1.Pod
		job, uid string // of the Ref
		seen     bool   // its Job
		names    []string
		some     bool
	}{
		"nothing is nothing": {},
		"the job of the shortest name ends the run": {
			jobs: []*batchv1.Job{jobOf("r-worker", "2"), jobOf("r", "1")}, pods: []*corev1.Pod{podOf("b", "r-worker", "2"), podOf("a", "r", "1")},
			job: "r", uid: "1", seen: true, names: []string{"a", "b"}, some: true,
		},
		"what is left of a known run is named by its job": {
			known: &cluster.Ref{Job: "r", UID: "1"}, jobs: []*batchv1.Job{jobOf("r-worker", "2")}, pods: []*corev1.Pod{podOf("b", "r-worker", "2")},
			job: "r", uid: "1", names: []string{"b"}, some: true,
		},
		"pods without a job name it": {
			pods: []*corev1.Pod{podOf("a", "r", "1")}, job: "r", uid: "1", names: []string{"a"}, some: true,
		},
		"a job of another UID is not the one": {
			known: &cluster.Ref{Job: "r", UID: "1"}, jobs: []*batchv1.Job{jobOf("r", "9")}, pods: []*corev1.Pod{podOf("a", "r", "9")},
			job: "r", uid: "1",
		},
		"a pod that was orphaned is still its pod": {
			known: &cluster.Ref{Job: "r", UID: "1"}, pods: []*corev1.Pod{podOf("a", "r", "")}, job: "r", uid: "1", names: []string{"a"}, some: true,
		},
		"any UID will do where none is asked for": {
			known: &cluster.Ref{Job: "r"}, jobs: []*batchv1.Job{jobOf("r", "9")}, pods: []*corev1.Pod{podOf("a", "r", "9")},
			job: "r", uid: "9", seen: true, names: []string{"a"}, some: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen, some := kube.SnapshotOf("r", row.known, row.jobs, row.pods)
			var names []string
			for _, p := range seen.Pods {
				names = append(names, p.Name)
			}
			if some != row.some || seen.Ref.Job != row.job || seen.Ref.UID != row.uid || (seen.Job != nil) != row.seen {
				t.Errorf("%v %+v, job %v", some, seen.Ref, seen.Job != nil)
			}
			if diff := cmp.Diff(row.names, names); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func eventOf(name, about, reason string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.EventTypeNormal, Reason: reason,
		InvolvedObject: corev1.ObjectReference{UID: types.UID(about)}, LastTimestamp: metav1.NewTime(at),
	}
}

func TestAPodIsGivenUpOnceItShouldHaveEndedLongAgo(t *testing.T) {
	should := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for name, row := range map[string]struct {
		deletedAt *metav1.Time
		now       time.Duration // after the deadline
		want      bool
	}{
		"one that nobody told to end":      {nil, time.Hour, false},
		"one that still has its grace":     {&should, -time.Second, false},
		"one whose node may be slow":       {&should, time.Minute, false},
		"one whose node is taken for lost": {&should, time.Minute + 1, true},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: row.deletedAt}} // see cluster.DeletionDeadline
		if got := kube.IsOverdue(p, should.Add(row.now), time.Minute); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTelling(t *testing.T) {
	for name, row := range map[string]struct {
		event corev1.Event
		want  bool
	}{
		"a warning tells":                  {corev1.Event{Type: "Warning", Reason: "Started"}, true},
		"that a node is added tells":       {corev1.Event{Type: "Normal", Reason: "TriggeredScaleUp"}, true},
		"that an image is pulled tells":    {corev1.Event{Type: "Normal", Reason: "Pulling"}, true},
		"that a container began does not":  {corev1.Event{Type: "Normal", Reason: "Started"}, false},
		"that a pod has a node tells not":  {corev1.Event{Type: "Normal", Reason: "Scheduled"}, false},
		"that a pod was created tells not": {corev1.Event{Type: "Normal", Reason: "SuccessfulCreate"}, false},
	} {
		if got := kube.IsInformative(&row.event); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBookKeepsTheLatestEventsOfEachObjectInOrder(t *testing.T) {
	b, begin := kube.NewEventCache(), time.Unix(1000, 0)
	for n := range 80 {
		e := eventOf(fmt.Sprint("e", n), "a", "Pulling", begin.Add(time.Duration(n)*time.Second))
		for range 2 { // the event comes twice
			if err := b.Add(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = b.Add(eventOf("x", "b", "Pulled", begin.Add(time.Hour)))
	_ = b.Add(eventOf("y", "b", "Started", begin))
	got := b.EventsFor("b", "a", "none")
	if len(got) != 51 || got[0].Name != "e30" || got[49].Name != "e79" || got[50].Name != "x" || b.Count() != 51 {
		t.Errorf("%d events of %d, from %s to %s", len(got), b.Count(), got[0].Name, got[len(got)-1].Name)
	}
	_ = b.Delete(eventOf("x", "b", "Pulled", begin))
	_ = b.Delete(eventOf("x", "b", "Pulled", begin))
	if n := len(b.EventsFor("b")); n != 0 || b.Count() != 50 {
		t.Errorf("%d events after the deletion, %d in all", n, b.Count())
	}
	_ = b.Replace([]any{eventOf("z", "a", "Pulling", begin)}, "1")
	if got := b.EventsFor("a"); len(got) != 1 || got[0].Name != "z" || b.Count() != 1 {
		t.Errorf("%d events after the replacement", len(got))
	}
}

func TestSettingsAreValidated(t *testing.T) {
	s := kube.Settings{QPS: -1, Timeout: -1, Lost: -1, Kinds: []string{"mpijobs"}}
	err := s.Validate()
	for _, want := range []string{"kubernetes.qps", "kubernetes.timeout", "kubernetes.lost", `"mpijobs"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if err := (kube.Settings{Kinds: []string{"mpijobs.v2beta1.kubeflow.org"}}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := kube.New(kube.Settings{Kubeconfig: "/nosuch"}, nil); err == nil || !strings.Contains(err.Error(), "/nosuch") {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}

func TestOnlyAJobThatGoesOnIsStopped(t *testing.T) {
	yes := true
	ended := func(c batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: c, Status: corev1.ConditionTrue}}
		}
	}
	for name, row := range map[string]struct {
		change func(*batchv1.Job)
		want   bool
	}{
		"one that runs":                      {func(*batchv1.Job) {}, true},
		"one that a queue holds back":        {ended(batchv1.JobSuspended), true},
		"not one that is complete":           {ended(batchv1.JobComplete), false},
		"not one that failed":                {ended(batchv1.JobFailed), false},
		"not one that is failing":            {ended(batchv1.JobFailureTarget), false},
		"not one that is being deleted":      {func(j *batchv1.Job) { now := metav1.Now(); j.DeletionTimestamp = &now }, false},
		"not one that was told to end":       {func(j *batchv1.Job) { j.Annotations = map[string]string{kube.AnnotationStopped: "x"} }, false},
		"not one that an operator ends":      {func(j *batchv1.Job) { j.OwnerReferences = []metav1.OwnerReference{{Kind: "MPIJob", Controller: &yes}} }, false},
		"one that our ConfigMap is owner of": {func(j *batchv1.Job) { j.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap"}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{}
			row.change(j)
			if got := kube.NeedsStop(j); got != row.want {
				t.Errorf("%t", got)
			}
		})
	}
}
