package validate_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// job returns an accepted Job that uses many fields.
func job() *batchv1.Job {
	zero, always, deadline := int32(0), corev1.ContainerRestartPolicyAlways, int64(60)
	no := false
	meta := metav1.ObjectMeta{Name: "run", Namespace: "default", Labels: map[string]string{cluster.LabelRun: "r", cluster.LabelAttempt: "1"}, Annotations: map[string]string{"a": "b"}}
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			BackoffLimit: &zero, ActiveDeadlineSeconds: &deadline, TTLSecondsAfterFinished: &zero,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
					NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "x"}},
					SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Volumes:         []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
					InitContainers: []corev1.Container{{Name: "side", Command: []string{"x"}, RestartPolicy: &always, SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					}}},
					Containers: []corev1.Container{{
						Name: "benchmark", Image: "image", Command: []string{"true"}, Args: []string{"a"},
						Env:          []corev1.EnvVar{{Name: "UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}},
						VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/data/x", SubPath: "0", ReadOnly: true}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}, Limits: corev1.ResourceList{validate.GPU: resource.MustParse("1")},
						},
					}},
				},
			},
		},
	}
}

// indexed makes a Job one of n pods with numbers.
func indexed(j *batchv1.Job, n int32) *batchv1.Job {
	mode := batchv1.IndexedCompletion
	j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = &mode, &n, &n
	return j
}

func TestWhatIsCarriedOutIsAccepted(t *testing.T) {
	t.Parallel()
	labels := metav1.ObjectMeta{Name: "c", Namespace: "default", Labels: job().Labels}
	config := &corev1.ConfigMap{ObjectMeta: labels, Data: map[string]string{"a": "b"}}
	config.Kind = "ConfigMap"
	secret := &corev1.Secret{ObjectMeta: labels, Data: map[string][]byte{"a": nil}, Type: corev1.SecretTypeOpaque}
	secret.Kind = "Secret"
	several := indexed(job(), 4)
	several.Spec.Template.Spec.Hostname, several.Spec.Template.Spec.Subdomain = "x", "y"
	several.Spec.Template.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"y.default.svc"}}
	several.Name = "several"
	again := job()
	again.UID, again.CreationTimestamp, again.ResourceVersion = "uid", metav1.Unix(1000, 0), "3"
	for _, o := range []cluster.Object{job(), several, again, config, secret} {
		if err := validate.Object(o, validate.Machine{GPUs: 4}); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsNotCarriedOutIsRefused(t *testing.T) {
	t.Parallel()
	yes, two := true, int32(2)
	user := int64(1000)
	type pod = corev1.PodSpec
	type container = corev1.Container
	spec := func(f func(*pod)) func(*batchv1.Job) { return func(j *batchv1.Job) { f(&j.Spec.Template.Spec) } }
	main := func(f func(*container)) func(*batchv1.Job) { return spec(func(s *pod) { f(&s.Containers[0]) }) }
	limit := func(name, q string) func(*batchv1.Job) {
		return main(func(c *container) {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(q)}
		})
	}
	for name, test := range map[string]struct {
		change  func(*batchv1.Job)
		machine validate.Machine
		want    string // in the message
		reason  event.Reason
	}{
		"a name that is none":  {change: func(j *batchv1.Job) { j.Name = "A_B" }, want: `metadata.name "A_B"`},
		"no namespace":         {change: func(j *batchv1.Job) { j.Namespace = "" }, want: "metadata.namespace"},
		"no run":               {change: func(j *batchv1.Job) { delete(j.Labels, cluster.LabelRun) }, want: cluster.LabelRun},
		"no attempt":           {change: func(j *batchv1.Job) { j.Labels[cluster.LabelAttempt] = "x" }, want: cluster.LabelAttempt},
		"a pod of another run": {change: func(j *batchv1.Job) { j.Spec.Template.Labels = nil }, want: "spec.template.metadata.labels"},
		"a name to be made up": {change: func(j *batchv1.Job) { j.GenerateName = "x-" }, want: "metadata.generateName"},
		"an owner":             {change: func(j *batchv1.Job) { j.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, want: "metadata.ownerReferences"},
		"several pods":         {change: func(j *batchv1.Job) { j.Spec.Parallelism = &two }, want: "spec.parallelism"},
		"several completions":  {change: func(j *batchv1.Job) { j.Spec.Completions = &two }, want: "spec.completions"},
		"retries":              {change: func(j *batchv1.Job) { j.Spec.BackoffLimit = &two }, want: "spec.backoffLimit"},
		"retries by default":   {change: func(j *batchv1.Job) { j.Spec.BackoffLimit = nil }, want: "spec.backoffLimit"},
		"a suspended job":      {change: func(j *batchv1.Job) { j.Spec.Suspend = &yes }, want: "spec.suspend"},
		"pods one after the other": {change: func(j *batchv1.Job) {
			indexed(j, 2)
			j.Spec.Parallelism = nil
		}, want: "at the same time"},
		"too many pods":     {change: func(j *batchv1.Job) { indexed(j, validate.MaxPods+1) }, want: "at most 1000"},
		"no pod":            {change: func(j *batchv1.Job) { indexed(j, 0) }, want: "spec.completions"},
		"GPUs for each pod": {change: func(j *batchv1.Job) { indexed(j, 3) }, want: "3 GPUs, and this machine has 1", reason: event.NeedsGPU},
		"a failure policy": {change: func(j *batchv1.Job) {
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{}}}
		}, want: "spec.podFailurePolicy"},
		"a deadline of nothing":       {change: func(j *batchv1.Job) { z := int64(0); j.Spec.ActiveDeadlineSeconds = &z }, want: "spec.activeDeadlineSeconds"},
		"a pod's own deadline":        {change: spec(func(s *pod) { s.ActiveDeadlineSeconds = &user }), want: "spec.template.spec.activeDeadlineSeconds"},
		"another restart policy":      {change: spec(func(s *pod) { s.RestartPolicy = corev1.RestartPolicyOnFailure }), want: "restartPolicy"},
		"a name as a host":            {change: spec(func(s *pod) { yes := true; s.SetHostnameAsFQDN = &yes }), want: "spec.template.spec.setHostnameAsFQDN"},
		"the machine's processes":     {change: spec(func(s *pod) { s.HostPID = true }), want: "spec.template.spec.hostPID"},
		"another user":                {change: spec(func(s *pod) { s.SecurityContext.RunAsUser = &user }), want: "spec.template.spec.securityContext.runAsUser"},
		"another user of a container": {change: main(func(c *container) { c.SecurityContext = &corev1.SecurityContext{RunAsUser: &user} }), want: "containers[0].securityContext.runAsUser"},
		"a probe":                     {change: main(func(c *container) { c.LivenessProbe = &corev1.Probe{PeriodSeconds: 1} }), want: "spec.template.spec.containers[0].livenessProbe.periodSeconds"},
		"a hook": {change: main(func(c *container) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}}
		}), want: "containers[0].lifecycle.preStop"},
		"a terminal": {change: main(func(c *container) { c.TTY = true }), want: "containers[0].tty"},
		"a device":   {change: main(func(c *container) { c.VolumeDevices = []corev1.VolumeDevice{{Name: "x"}} }), want: "containers[0].volumeDevices"},
		"an ephemeral container": {change: spec(func(s *pod) {
			s.EphemeralContainers = make([]corev1.EphemeralContainer, 1)
			s.EphemeralContainers[0].Name = "x"
		}), want: "ephemeralContainers"},
		"two containers of one name": {change: spec(func(s *pod) { s.Containers[0].Name = "side" }), want: `two containers "side"`},
		"a container without a name": {change: main(func(c *container) { c.Name = "" }), want: "containers[0].name"},
		"no container":               {change: spec(func(s *pod) { s.Containers = nil }), want: "spec.template.spec.containers"},
		"a main container for ever":  {change: main(func(c *container) { a := corev1.ContainerRestartPolicyAlways; c.RestartPolicy = &a }), want: "containers[0].restartPolicy"},
		"a relative directory":       {change: main(func(c *container) { c.WorkingDir = "x" }), want: "not an absolute path"},
		"a variable without a name":  {change: main(func(c *container) { c.Env[0].Name = "" }), want: "env[0].name"},
		"a field that is not there":  {change: main(func(c *container) { c.Env[0].ValueFrom.FieldRef.FieldPath = "spec.serviceAccountName" }), want: `"spec.serviceAccountName"`},
		"a resource as a variable": {change: main(func(c *container) {
			c.Env[0].ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "x"}}
		}), want: "env[0].valueFrom.resourceFieldRef"},
		"a zero byte": {change: main(func(c *container) { c.Args = []string{"a\x00b"} }), want: "zero byte"},
		"a volume of the machine": {change: spec(func(s *pod) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}), want: "volumes[0].hostPath"},
		"a claim": {change: spec(func(s *pod) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}
		}), want: "volumes[0].persistentVolumeClaim"},
		"a volume of huge pages":  {change: spec(func(s *pod) { s.Volumes[0].EmptyDir.Medium = corev1.StorageMediumHugePages }), want: "emptyDir.medium"},
		"a limit on disk":         {change: spec(func(s *pod) { q := resource.MustParse("1Gi"); s.Volumes[0].EmptyDir.SizeLimit = &q }), want: "emptyDir.sizeLimit"},
		"two volumes of one name": {change: spec(func(s *pod) { s.Volumes = append(s.Volumes, s.Volumes[0]) }), want: "volumes[1].name"},
		"a mount of no volume":    {change: main(func(c *container) { c.VolumeMounts[0].Name = "x" }), want: `no volume "x"`},
		"a mount over everything": {change: main(func(c *container) { c.VolumeMounts[0].MountPath = "/" }), want: "mountPath"},
		"a mount in /proc":        {change: main(func(c *container) { c.VolumeMounts[0].MountPath = "/proc/x" }), want: "/proc"},
		"a relative mount":        {change: main(func(c *container) { c.VolumeMounts[0].MountPath = "x" }), want: "mountPath"},
		"two mounts at one place": {change: main(func(c *container) {
			m := c.VolumeMounts[0]
			m.MountPath += "/"
			c.VolumeMounts = append(c.VolumeMounts, m)
		}), want: "two volumes"},
		"a way out of a volume":     {change: main(func(c *container) { c.VolumeMounts[0].SubPath = "a/../../b" }), want: "subPath"},
		"a way from the root":       {change: main(func(c *container) { c.VolumeMounts[0].SubPath = "/etc" }), want: "subPath"},
		"a computed sub-path":       {change: main(func(c *container) { c.VolumeMounts[0].SubPathExpr = "$(A)" }), want: "subPathExpr"},
		"a mount that others see":   {change: main(func(c *container) { p := corev1.MountPropagationBidirectional; c.VolumeMounts[0].MountPropagation = &p }), want: "mountPropagation"},
		"a limit of memory":         {change: limit("memory", "1Gi"), want: "limit of memory"},
		"a limit of CPU":            {change: limit("cpu", "1"), want: "limit of cpu"},
		"more GPUs than there are":  {change: limit(validate.GPU, "2"), want: "2 GPUs, and this machine has 1", machine: validate.Machine{GPUs: 1}, reason: event.NeedsGPU},
		"GPUs that there never are": {change: limit("amd.com/gpu", "1"), want: "amd.com/gpu", reason: event.NeedsGPU},
		"devices of a cluster":      {change: limit("rdma/hca", "1"), want: "rdma/hca", reason: event.NeedsDevice},
		"large pages":               {change: limit("hugepages-2Mi", "2Mi"), want: "hugepages-2Mi", reason: event.NeedsDevice},
		"an MTU that is none": {
			change: func(j *batchv1.Job) { j.Spec.Template.Annotations = map[string]string{cluster.AnnotationMTU: "67"} },
			want:   `is "67", want a number from 68 to 65535`,
		},
		"no command": {change: main(func(c *container) { c.Command = nil }), want: `entrypoint of image "image"`, reason: event.NeedsImage},
		"a mount where there are none": {
			change: func(*batchv1.Job) {}, machine: validate.Machine{GPUs: 1, NoNamespaces: "set sysctl x"},
			want: "set sysctl x", reason: event.NeedsNamespaces,
		},
	} {
		j := job()
		test.change(j)
		if test.machine.GPUs == 0 {
			test.machine.GPUs = 1
		}
		err := validate.Object(j, test.machine)
		switch {
		case err == nil:
			t.Errorf("%s: accepted", name)
		case !strings.Contains(err.Message, test.want) || err.Reason != string(test.reason) || err.Object != "Job "+j.Name:
			t.Errorf("%s: refused %s as %q: %s; want it to say %q as %q", name, err.Object, err.Reason, err.Message, test.want, test.reason)
		}
	}
}

func TestOtherKindsOfObjectsAreRefused(t *testing.T) {
	t.Parallel()
	s := &corev1.Endpoints{ObjectMeta: job().ObjectMeta} //nolint:staticcheck // one that is not carried out
	s.Kind = "Endpoints"
	if err := validate.Object(s, validate.Machine{}); err == nil {
		t.Error("Endpoints were accepted")
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(*corev1.Service)
		machine validate.Machine
		want    string
		reason  event.Reason
	}{
		"of one port":            {change: func(*corev1.Service) {}},
		"of each replica":        {change: func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }},
		"of another port":        {change: func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(81) }, want: "spec.ports[0].targetPort"},
		"of a node's port":       {change: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, want: "spec.type"},
		"where no name is found": {change: func(*corev1.Service) {}, machine: validate.Machine{NoNamespaces: "set sysctl x"}, want: "set sysctl x", reason: event.NeedsNamespaces},
		"where pods would meet":  {change: func(*corev1.Service) {}, machine: validate.Machine{NoNetworks: "load veth"}, want: "load veth", reason: event.NeedsNamespaces},
	} {
		s := &corev1.Service{ObjectMeta: job().ObjectMeta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Name: "p", Port: 80, TargetPort: intstr.FromInt32(80), Protocol: corev1.ProtocolTCP}},
		}}
		s.APIVersion, s.Kind = "v1", "Service"
		tt.change(s)
		err := validate.Object(s, tt.machine)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Message, tt.want) || err.Reason != string(tt.reason)):
			t.Errorf("%s: %v, want it refused with %q", name, err, tt.want)
		}
	}
}
