package preflight_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// fakePlanner is a Planner that always returns the same plan.
type fakePlanner struct {
	objects []cluster.Object
	err     error
}

func (p fakePlanner) Preview(context.Context, *descriptors.Descriptor, []byte, bool) (transpile.Workload, []cluster.Image, error) {
	return transpile.Workload{Objects: p.objects, Scope: "benchmarks"}, nil, p.err
}

// fakeCluster is a cluster that records its requests.
type fakeCluster struct {
	inquiry *cluster.SurveyRequest
	err     error
}

func (s *fakeCluster) Survey(_ context.Context, q cluster.SurveyRequest) (cluster.Survey, error) {
	s.inquiry = &q
	return cluster.Survey{Name: "a cluster"}, s.err
}

type deniedSources map[string]string

func (r deniedSources) Check(source string) error {
	if why := r[source]; why != "" {
		return errors.New(why)
	}
	return nil
}

func descriptorWithData() *descriptors.Descriptor {
	return &descriptors.Descriptor{
		Data:   descriptors.Data{Sources: []descriptors.Source{{Src: "https://a/set"}}},
		Server: &descriptors.Server{Models: []descriptors.Source{{Src: "ftp://a/model"}}},
	}
}

func TestARunThatCannotBeIsNotHeldAgainstACluster(t *testing.T) {
	s := &fakeCluster{}
	c := preflight.New(preflight.Settings{}, preflight.Deps{Planner: fakePlanner{err: errors.New("no such engine")}, Cluster: s, Sources: deniedSources{"ftp://a/model": "scheme"}})
	checks := c.Check(t.Context(), descriptorWithData(), nil, false)
	if s.inquiry != nil {
		t.Errorf("the cluster was asked %+v", s.inquiry)
	}
	if got := messages(checks, preflight.TopicPlan); got != "user fault : no such engine" {
		t.Error(got)
	}
	if got := messages(checks, preflight.TopicData); got != "fine https://a/set: it may be asked for; whether it is there shows when it is fetched\nuser fault ftp://a/model: scheme" {
		t.Error(got)
	}
}

func TestAClusterThatIsAwayIsAFaultAmongOthers(t *testing.T) {
	c := preflight.New(preflight.Settings{}, preflight.Deps{Planner: fakePlanner{}, Cluster: &fakeCluster{err: errors.New("refused")}})
	if got := messages(c.Check(t.Context(), descriptorWithData(), nil, false), preflight.TopicCluster); got != "platform fault : the cluster cannot be asked: refused" {
		t.Error(got)
	}
}

func TestTheClusterOfTheEngineOfARunIsAsked(t *testing.T) {
	near, far := &fakeCluster{}, &fakeCluster{}
	engine := func(d *descriptors.Descriptor) string { return d.Info.ExecutionEngine }
	c := preflight.New(preflight.Settings{}, preflight.Deps{Planner: fakePlanner{}, EngineOf: engine, Cluster: near, Engines: map[string]cluster.Surveyor{"gpu": far}})
	d := descriptorWithData()
	d.Info.ExecutionEngine = "gpu"
	if c.Check(t.Context(), d, nil, false); near.inquiry != nil || far.inquiry == nil {
		t.Errorf("asked: %t of the default engine, %t of that of the run", near.inquiry != nil, far.inquiry != nil)
	}
	d.Info.ExecutionEngine = "elsewhere"
	want := "warning : the gateway cannot ask engine elsewhere: whether its cluster has what the run needs is not known"
	if got := messages(c.Check(t.Context(), d, nil, false), preflight.TopicCluster); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// objects returns the objects of a run that needs everything that a survey covers.
func objects() []cluster.Object {
	own := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "bai-x-1"}}
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}}
	launcher := job("launcher", nil, func(j *batchv1.Job) {
		s := &j.Spec.Template.Spec
		s.PriorityClassName, s.ImagePullSecrets = "urgent", []corev1.LocalObjectReference{{Name: "login"}}
		s.Volumes = []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "bai-x-1"}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "aws", Items: []corev1.KeyToPath{{Key: "credentials"}}}}},
		}
		s.Containers[0].Command = []string{"/bai/bin/bai-pod", "exec", "--", "/bai/mpi/launch", "mpirun", "-n", "2", "train"}
		s.Containers[0].Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "registry"}, Key: "token",
		}}}}
	})
	queued := job("benchmark", nil, func(j *batchv1.Job) {
		j.Labels["kueue.x-k8s.io/queue-name"] = "team"
		j.Spec.Template.Spec.Containers[0].Command = []string{"/bai/bin/bai-pod", "exec", "--", "/usr/bin/env", "python3", "-u", "/bai/script/benchmark"}
	})
	class := "fast"
	claim := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
	return []cluster.Object{own, group, launcher, queued, claim}
}

func TestAProgramThatAVariableNamesIsTheOneThatItStandsFor(t *testing.T) {
	for name, tt := range map[string]struct {
		command string
		want    []string
	}{
		"with a value":         {"$(PYTHON)", []string{"python3"}},
		"a folder of one":      {"$(HOME_OF)/bin/train", []string{"/opt/x/bin/train"}},
		"known only in there":  {"$(SECRET)", nil},
		"of which none is set": {"$(NONE)", nil},
		"with a dollar in it":  {"/opt/$$x/train", []string{"/opt/$x/train"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := job("benchmark", nil, func(j *batchv1.Job) {
				c := &j.Spec.Template.Spec.Containers[0]
				c.Command = []string{"/bai/bin/bai-pod", "exec", "--", tt.command, "train.py"}
				c.Env = []corev1.EnvVar{
					{Name: "PYTHON", Value: "python3"},
					{Name: "HOME_OF", Value: "/opt/x"},
					{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
				}
			})
			q := preflight.NewInquiry(preflight.Requirements{Scope: "benchmarks", Objects: []cluster.Object{j}}, preflight.Settings{})
			if diff := cmp.Diff(tt.want, q.Programs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheProgramThatMpirunStartsIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, want string }{
		{"mpirun -n 2 train --fast", "ssh sshd mpirun train"},
		{"mpirun --mca btl tcp -x LIB --map-by node -np 4 /opt/train -n 1", "ssh sshd mpirun /opt/train"},
		{"mpiexec.hydra -genv A 1 -ppn 2 /usr/bin/env A=1 python3 train.py", "ssh sshd mpiexec.hydra /usr/bin/env python3"},
		{"mpiexec.mpich -n 2 train", "ssh sshd mpiexec.mpich train"},
		{"mpirun --unknown train", "ssh sshd mpirun"},
		{"mpirun -n", "ssh sshd mpirun"},
		{"mpirun -n 2 $(BAI_SCRIPTS_PATH)/train", "ssh sshd mpirun"},
	} {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			j := job("launcher", nil, func(j *batchv1.Job) {
				j.Spec.Template.Spec.Containers[0].Command = append([]string{"/bai/bin/bai-pod", "exec", "--", "/bai/mpi/launch"}, strings.Fields(tt.command)...)
			})
			q := preflight.NewInquiry(preflight.Requirements{Scope: "benchmarks", Objects: []cluster.Object{j}}, preflight.Settings{})
			if got := strings.Join(q.Programs, " "); got != tt.want {
				t.Errorf("it looks for %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheNetworkOfPodsIsAskedFor(t *testing.T) {
	t.Parallel()
	j := job("benchmark", nil)
	j.Spec.Template.Annotations = map[string]string{cluster.AnnotationNetwork: "kube-system/fast"}
	q := preflight.NewInquiry(preflight.Requirements{Scope: "benchmarks", Objects: []cluster.Object{j, job("other", nil)}}, preflight.Settings{})
	if diff := cmp.Diff([]any{[]string{"kube-system/fast"}, []schema.GroupVersionKind{{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}}}, []any{q.Networks, q.Kinds}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatARunNeedsIsAskedFor(t *testing.T) {
	q := preflight.NewInquiry(preflight.Requirements{Scope: "benchmarks", Objects: objects()}, preflight.Settings{Executor: "e", Watcher: "w"})
	got := map[string]any{"secrets": q.Secrets, "classes": q.PriorityClasses, "programs": q.Programs, "kinds": q.Kinds, "scope": q.Scope, "storage": q.StorageClasses}
	want := map[string]any{
		"secrets":  []cluster.SecretKey{{Name: "login"}, {Name: "aws", Key: "credentials"}, {Name: "registry", Key: "token"}},
		"classes":  []string{"urgent"},
		"programs": []string{"ssh", "sshd", "mpirun", "train", "/usr/bin/env", "python3"},
		"kinds": []schema.GroupVersionKind{
			{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}, {Group: "kueue.x-k8s.io", Kind: "LocalQueue"},
		},
		"scope": "benchmarks", "storage": []string{"fast"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for right, asked := range map[cluster.Permission]bool{
		{Account: "e", Verb: "create", Group: "batch", Resource: "jobs"}:                      true,
		{Account: "e", Verb: "create", Group: "scheduling.volcano.sh", Resource: "podgroups"}: true,
		{Account: "e", Verb: "deletecollection", Resource: "secrets"}:                         true,
		{Account: "w", Verb: "watch", Resource: "pods"}:                                       true,
		{Account: "e", Verb: "create", Resource: "services"}:                                  false,
		{Account: "w", Verb: "get", Resource: "pods/log"}:                                     false,
		{Account: "w", Verb: "patch", Resource: "pods/status"}:                                false,
		{Account: "e", Verb: "get", Resource: "secrets"}:                                      false,
		{Account: "w", Verb: "create", Group: "batch", Resource: "jobs"}:                      false,
		{Account: "e", Verb: "watch", Resource: "pods"}:                                       false,
		{Account: "e", Verb: "delete", Group: "scheduling.volcano.sh", Resource: "podgroups"}: true,
	} {
		if slices.Contains(q.Permissions, right) != asked {
			t.Errorf("%+v is asked for: %t, want %t", right, !asked, asked)
		}
	}
}

func TestTheRightToAnnotatePodsIsNeededForRunsOfSeveral(t *testing.T) {
	several := job("benchmark", nil, func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: cluster.ContainerHosts}}
	})
	q := preflight.NewInquiry(preflight.Requirements{Objects: []cluster.Object{several}}, preflight.Settings{Watcher: "w"})
	if !slices.Contains(q.Permissions, cluster.Permission{Account: "w", Verb: "patch", Resource: "pods/status"}) {
		t.Errorf("not among %+v", q.Permissions)
	}
}

func TestTheRightToReadLogsIsNeededForAnImagesEntrypointOnly(t *testing.T) {
	entrypoint := job("benchmark", nil, func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Command = nil })
	q := preflight.NewInquiry(preflight.Requirements{Objects: []cluster.Object{entrypoint}}, preflight.Settings{})
	if !slices.Contains(q.Permissions, cluster.Permission{Verb: "get", Resource: "pods/log"}) {
		t.Errorf("not among %+v", q.Permissions)
	}
}
