package transpile

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

// Volumes of a pod.
const (
	volumePod      = "bai"
	volumePrograms = "programs" // filled by install, and read-only after it
	volumeState    = "state"    // state of the collector
	volumeData     = "data"
	volumeSecret   = "secret"
	volumeScript   = "script"
	volumeShm      = "shm"
	volumeMPI      = "mpi"
	volumeKeys     = "mpi-keys"
)

// fifoWait is how long the original client library waits for the FIFO.
const fifoWait = 60 * time.Second

// artifactsGrace is added to the grace period of a pod with artifacts.
const artifactsGrace = 4 * time.Minute

// endGrace is added to the grace period of a pod without artifacts: the entrypoint kills the benchmark when pods.grace is over, and then
// records the rest of its output and its exit.
const endGrace = 10 * time.Second

// collectorWait is how long a benchmark waits for its collector, which normally takes
// some milliseconds.
const collectorWait = 10 * time.Second

// podSpec returns the spec of one pod of the role.
func (b builder) podSpec() corev1.PodSpec {
	off, grace := false, int64(b.podGrace()/time.Second)
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken:  &off,
		EnableServiceLinks:            &off,
		SecurityContext:               b.podSecurity(),
		NodeSelector:                  b.nodeSelector(),
		Tolerations:                   b.tolerations(),
		Affinity:                      b.affinity(),
		TopologySpreadConstraints:     b.topologySpread(),
		PriorityClassName:             b.priorityClass(),
		SchedulerName:                 b.settings.Scheduler,
		InitContainers:                b.initContainers(),
		Containers:                    append([]corev1.Container{b.benchmarkContainer()}, b.stepContainers(descriptors.After)...),
		Volumes:                       b.volumes(),
	}
	if b.role.Network != "" {
		b.setPodDNS(&spec)
	}
	b.setHostNetwork(&spec)
	for _, name := range append([]string{b.role.Env.ImagePullSecret}, b.settings.PullSecrets...) {
		if name != "" {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	return spec
}

// setPodDNS gives a pod a name that all pods of the run can resolve, even in its short
// form.
func (b builder) setPodDNS(spec *corev1.PodSpec) {
	spec.Subdomain = b.names.Subdomain(b.role)
	if !b.role.Indexed {
		spec.Hostname = b.name()
	}
	domain := fmt.Sprintf("%s.%s.svc.%s", b.names.Subdomain(b.role), b.settings.scope(), cmp.Or(b.settings.Domain, "cluster.local"))
	spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{domain}}
}

// MaxTermination returns the longest grace period of any pod.
func (s Settings) MaxTermination() time.Duration {
	return max(s.grace()+artifactsGrace, s.shippingGrace())
}

// grace returns the grace period of every benchmark.
func (s Settings) grace() time.Duration {
	return time.Duration(*seconds32(s.Grace, 5*time.Minute)) * time.Second
}

// shippingGrace returns how long a collector may continue to ship the data of its pod.
func (s Settings) shippingGrace() time.Duration {
	return time.Duration(*seconds32(s.ShippingGrace, time.Hour)) * time.Second
}

// benchmarkGrace returns the grace period of a benchmark's container. It is longer than that of the benchmark if the platform's entrypoint
// ends the benchmark, longer still with artifacts, and longer by the time of steps that run always.
func (b builder) benchmarkGrace() time.Duration {
	grace := b.settings.grace() + b.role.AlwaysTime()
	switch {
	case len(b.role.Artifacts) > 0:
		grace += artifactsGrace
	case b.hasEntrypoint():
		grace += endGrace
	}
	return grace
}

// hasEntrypoint reports whether the platform's entrypoint runs the benchmark.
func (b builder) hasEntrypoint() bool { return len(b.role.Command) > 0 || b.role.Image.Digest != "" }

// podGrace returns the grace period of a pod with its collector. Where the platform's
// entrypoint does not run the benchmark, Kubernetes has to end it, and Kubernetes has only
// one grace period for the pod.
func (b builder) podGrace() time.Duration {
	if !b.hasEntrypoint() {
		return b.benchmarkGrace()
	}
	return max(b.benchmarkGrace(), b.settings.shippingGrace()+b.role.AlwaysTime())
}

// initContainers returns the containers that start before the benchmark.
func (b builder) initContainers() []corev1.Container {
	all := []corev1.Container{b.installContainer()}
	if b.setsMTU() {
		all = append(all, b.mtuContainer())
	}
	all = append(append(all, b.collectorContainer()), b.alwaysContainers()...)
	if len(b.role.Data) > 0 {
		all = append(all, b.pullContainer())
	}
	all = slices.Concat(all, b.hostsContainers(), b.stepContainers(descriptors.Before))
	if len(b.role.AwaitArgs) > 0 {
		all = append(all, b.waitContainer())
	}
	return all
}

func (b builder) podSecurity() *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	s.FSGroup = b.volumeGroup()
	if b.settings.Security == Restricted {
		yes := true
		s.RunAsNonRoot = &yes
	}
	return s
}

// installContainer returns the container that copies the program into the pod. It is
// the only container that runs the program from the image's own file system.
func (b builder) installContainer() corev1.Container {
	c := b.platformContainer(cluster.ContainerInstall, pod.ImageBinary, "install", pod.PathIn("", pod.Binary))
	c.Env = nil
	c.VolumeMounts = []corev1.VolumeMount{programsMount(false)}
	return c
}

// collectorContainer returns the collector, a native sidecar: it starts before the
// benchmark and ends after it.
func (b builder) collectorContainer() corev1.Container {
	c := b.platformContainer(cluster.ContainerCollect, pod.PathIn("", pod.ShipBinary), "collect")
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	c.Env = append(c.Env, corev1.EnvVar{Name: pod.EnvStateDir, Value: pod.StateDir})
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: volumeState, MountPath: pod.StateDir},
		corev1.VolumeMount{Name: volumeSecret, MountPath: pod.SecretDir, ReadOnly: true})
	for _, m := range b.artifactMounts() {
		m.MountPath, m.ReadOnly = pod.VolumesDir+m.MountPath, true
		c.VolumeMounts = append(c.VolumeMounts, m)
	}
	if b.role.Indexed {
		c.Env = append(c.Env, roles.PodIndexVar(pod.EnvIndex, b.names.Operator))
	}
	return c
}

// waitContainer returns the container that waits until another role is ready.
func (b builder) waitContainer() corev1.Container {
	c := b.platformContainer(cluster.ContainerWait, pod.PathIn("", pod.ShipBinary), "await")
	c.Args, c.VolumeMounts = escapeDollars(b.role.AwaitArgs), b.withHosts(c.VolumeMounts)
	return c
}

// pullContainer returns the container that downloads the data. Data set n goes to
// data/<n>, or to shared/<n>.
func (b builder) pullContainer() corev1.Container {
	c := b.platformContainer(cluster.ContainerPull, pod.PathIn("", pod.ShipBinary), "pull")
	if len(b.sharedDataSets()) > 0 {
		c.Env = append(c.Env, roles.PodIndexVar(pod.EnvIndex, b.names.Operator))
		b.runAsVolumeOwner(c.SecurityContext)
	}
	c.VolumeMounts = append(append(c.VolumeMounts, b.pullMounts()...),
		corev1.VolumeMount{Name: volumeSecret, MountPath: pod.SecretDir, ReadOnly: true})
	return c
}

// platformContainer returns a container that runs the platform's program without
// privileges.
func (b builder) platformContainer(name string, command ...string) corev1.Container {
	image := b.settings.Image
	if image == "" {
		image = DefaultImage
	}
	return corev1.Container{
		Name: name, Image: image, Command: command, Env: []corev1.EnvVar{podUIDVar(), nodeNameVar()},
		ImagePullPolicy:          corev1.PullPolicy(b.settings.PullPolicy),
		VolumeMounts:             []corev1.VolumeMount{{Name: volumePod, MountPath: pod.Dir}, programsMount(true)},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          restrictedSecurityContext(),
	}
}

// programsMount returns the mount of the platform's programs. Programs with the pod's
// credentials are started from there, so the benchmark must not be able to write to it.
func programsMount(readOnly bool) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumePrograms, MountPath: path.Dir(pod.PathIn("", pod.Binary)), ReadOnly: readOnly}
}

// restrictedSecurityContext returns the security context of a container without
// privileges.
func restrictedSecurityContext() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// benchmarkContainer returns the measured container. It has the user's image, and runs
// the user's command under the platform's program, which records the output and the
// exit. Without a command, it runs the image's entrypoint in the same way if the
// entrypoint is known; otherwise it runs the image unchanged.
func (b builder) benchmarkContainer() corev1.Container {
	r := b.role
	c := corev1.Container{
		Name: cluster.ContainerBenchmark, Image: r.Env.DockerImage, Args: escapeNonVariables(r.Args),
		Env: b.env(), Resources: b.resources(), VolumeMounts: b.mounts(), Ports: b.ports(),
		ImagePullPolicy:          b.settings.pullPolicy(r.Env),
		ReadinessProbe:           r.Probe,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	switch {
	case len(r.Command) > 0:
		c.Command = append(b.execCommand(), escapeNonVariables(r.Command)...)
	case r.Image.Digest != "":
		c.Image, c.Command = pinnedImage(r.Image),
			append([]string{pod.PathIn("", pod.Binary), "exec", "--"}, escapeDollars(r.Image.Entrypoint)...)
		if len(r.Args) == 0 {
			c.Args = escapeDollars(r.Image.Cmd)
		}
	}
	c.SecurityContext = b.benchmarkSecurityContext()
	return c
}

// userSecurityContext returns the security context of a container with the user's command.
func (b builder) userSecurityContext() *corev1.SecurityContext {
	switch {
	case b.role.Env.Privileged:
		yes := true
		return &corev1.SecurityContext{Privileged: &yes}
	case b.settings.Security == Restricted:
		return restrictedSecurityContext()
	}
	return nil
}

// escapeNonVariables escapes $$ in words, which Kubernetes would turn into a single $,
// and which a shell reads differently. It keeps $$(NAME), which is an escape already.
func escapeNonVariables(words []string) []string {
	several := regexp.MustCompile(`\$\$+\(?`)
	var escaped []string
	for _, w := range words {
		escaped = append(escaped, several.ReplaceAllStringFunc(w, func(dollars string) string {
			if strings.HasSuffix(dollars, "(") {
				return dollars
			}
			return dollars + dollars
		}))
	}
	return escaped
}

// mounts returns the mounts of the benchmark. They never have the Secret. Each data set
// is mounted at the path of its source.
func (b builder) mounts() []corev1.VolumeMount {
	return b.withHosts(append(b.sharedMounts(), b.outputMounts(descriptors.Before)...))
}

// sharedMounts returns the mounts of the benchmark that its steps have, too.
func (b builder) sharedMounts() []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: volumePod, MountPath: pod.Dir}, programsMount(true)}
	if len(b.role.Scripts()) > 0 {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeScript, MountPath: roles.ScriptDir, ReadOnly: true})
	}
	if b.role.MPI {
		mounts = append(mounts,
			corev1.VolumeMount{Name: volumeMPI, MountPath: roles.MPIDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeKeys, MountPath: roles.KeysDir, ReadOnly: true})
	}
	for n := range b.role.Data {
		mounts = append(mounts, b.dataMount(n))
	}
	mounts = slices.Concat(mounts, b.userMounts(), b.secretMounts())
	if b.role.Env.ExtendedShm {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeShm, MountPath: "/dev/shm"})
	}
	return mounts
}

// artifactMounts returns the benchmark's mounts that have artifacts. They outlive the
// container if it is killed, for example because it ran out of memory, and the
// collector ships the files from there.
func (b builder) artifactMounts() []corev1.VolumeMount {
	var all []corev1.VolumeMount
	if b.settings.Gateway == "" {
		return nil // no gateway stores artifacts
	}
	ours := []string{volumePod, volumePrograms, volumeScript, volumeMPI, volumeKeys, volumeHosts} // these have no artifacts
	for _, m := range b.mounts() {
		holds := func(a pod.Artifact) bool { return b.mountOf(a.Path).MountPath == m.MountPath }
		if !slices.Contains(ours, m.Name) && slices.ContainsFunc(b.role.Artifacts, holds) {
			all = append(all, m)
		}
	}
	return all
}

// mountOf returns the mount that a path is on. It returns the zero value for a relative
// path, and for one on the image's own file system.
func (b builder) mountOf(file string) (on corev1.VolumeMount) {
	file = path.Clean(file)
	for _, m := range b.mounts() {
		at := path.Clean(m.MountPath)
		if (file == at || strings.HasPrefix(file, at+"/")) && len(at) > len(on.MountPath) {
			on = m
		}
	}
	return on
}

func (b builder) volumes() []corev1.Volume {
	volumes := []corev1.Volume{
		{Name: volumePod, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: volumePrograms, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: volumeState, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: volumeSecret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: b.name()}}},
	}
	executable, readable := int32(0o555), int32(0o444)
	config := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
			DefaultMode:          &executable,
		}}
	}
	if len(b.role.Scripts()) > 0 {
		volumes = append(volumes, corev1.Volume{Name: volumeScript, VolumeSource: config(b.name())})
	}
	if b.role.MPI {
		keys := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: b.names.Shared("keys"), DefaultMode: &readable}}
		volumes = append(volumes, corev1.Volume{Name: volumeMPI, VolumeSource: config(b.names.Shared("mpi"))},
			corev1.Volume{Name: volumeKeys, VolumeSource: keys})
	}
	volumes = slices.Concat(volumes, b.hostsVolumes(), b.dataVolumes(), b.userVolumes(), b.secretVolumes(), b.outputVolumes())
	if b.role.Env.ExtendedShm {
		memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
		volumes = append(volumes, corev1.Volume{Name: volumeShm, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	}
	return volumes
}

// env returns the environment: the platform's variables, then the user's. A variable of
// the user's replaces one of the platform's with the same name.
func (b builder) env() []corev1.EnvVar {
	e := b.entrypointVars()
	e.set(pod.EnvGrace, b.settings.grace().String())
	e.set(pod.EnvBackend, "fifo")
	e.set(pod.EnvFile, pod.PathIn("", pod.Metrics))
	e.set(pod.EnvFIFO, pod.PathIn("", pod.FIFO))
	e.set(pod.EnvFIFOWait, strconv.Itoa(int(fifoWait.Seconds())))
	e.set(pod.EnvRun, b.in.Run.Run)
	e.set(pod.EnvAttempt, strconv.Itoa(b.in.Run.Attempt))
	if text := b.artifacts(); text != "" {
		e.set(pod.EnvArtifacts, text)
	}
	if text := b.parsers(); text != "" {
		e.set(pod.EnvParsers, text)
	}
	b.addMetricVars(&e)
	b.addUserVars(&e, b.role.Env)
	return e.vars
}

// addUserVars adds the variables of an environment, before them those of the platform that
// they may refer to.
func (b builder) addUserVars(e *envVars, env descriptors.Env) {
	for _, v := range b.role.Vars {
		e.put(v)
	}
	for _, name := range orderedKeys(env.Vars, env.VarOrder) {
		e.set(name, env.Vars[name])
	}
	for _, name := range orderedKeys(env.Secrets, nil) {
		ref := env.Secrets[name]
		e.put(corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Key: ref.Key,
		}}})
	}
}

// entrypointVars returns the variables of the program that runs the user's command.
func (b builder) entrypointVars() envVars {
	e := envVars{vars: []corev1.EnvVar{podUIDVar()}}
	e.set(pod.EnvAwait, collectorWait.String())
	if n := b.maxLog(); n > 0 {
		e.set(pod.EnvMaxLog, strconv.FormatInt(n, 10))
	}
	if n := b.settings.Reserve; n > 0 {
		e.set(pod.EnvReserve, strconv.FormatInt(n, 10))
	}
	return e
}

// addMetricVars adds the variables that turn on metrics which the benchmark does not
// write itself.
func (b builder) addMetricVars(e *envVars) {
	if b.role.SystemInterval != nil {
		e.set(pod.EnvSystem, b.role.SystemInterval.String())
	}
	if b.role.OTLP {
		e.set(pod.EnvOTLPEndpoint, pod.DefaultOTLP)
		e.set(pod.EnvOTLPProtocol, pod.OTLPProtocol)
		e.set(pod.EnvOTLPEvery, pod.OTLPEvery)
	}
}

// envVars is a list of variables with unique names.
type envVars struct{ vars []corev1.EnvVar }

func (e *envVars) set(name, value string) { e.put(corev1.EnvVar{Name: name, Value: value}) }

func (e *envVars) put(v corev1.EnvVar) {
	for i := range e.vars {
		if e.vars[i].Name == v.Name {
			e.vars[i] = v
			return
		}
	}
	e.vars = append(e.vars, v)
}

func podUIDVar() corev1.EnvVar {
	return corev1.EnvVar{
		Name:      pod.EnvPodUID,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}},
	}
}

// nodeNameVar returns the variable with the name of the pod's node.
func nodeNameVar() corev1.EnvVar {
	return corev1.EnvVar{
		Name:      pod.EnvNode,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}},
	}
}
