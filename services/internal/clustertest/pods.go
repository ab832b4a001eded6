package clustertest

import (
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

func mount(c *corev1.Container, volume, path, subPath string) {
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path, SubPath: subPath})
}

// shareVolume gives all containers of a Job one volume, at $D in their scripts.
func shareVolume(j *batchv1.Job) {
	s := &j.Spec.Template.Spec
	s.Volumes = append(s.Volumes,
		corev1.Volume{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			mount(&cs[i], "shared", pod.Dir, "")
		}
	}
}

// succeeds runs a job whose exit code shows whether its own checks passed.
func succeeds(b *fixture) cluster.Snapshot {
	b.Helper()
	return check(b, result{
		Succeeded: 1, Condition: batchv1.JobComplete, Reason: "CompletionsReached",
		Phase: corev1.PodSucceeded, ExitReason: "Completed",
	})
}

func inOrder(b *fixture) {
	j := b.job(`test "$(cat $D/order)" = "first second"`)
	j.Spec.Template.Spec.InitContainers = []corev1.Container{
		b.sh("first", "printf first > $D/order; sleep 0.05"), b.sh("second", "printf ' second' >> $D/order"),
	}
	shareVolume(j)
	b.create(j)
	succeeds(b)
}

func asSidecar(c corev1.Container) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func sidecar(b *fixture) {
	j := b.job("until test -e $D/aside; do sleep 0.02; done; exit 0")
	j.Spec.Template.Spec.InitContainers = []corev1.Container{
		asSidecar(b.sh("aside", "trap 'exit 0' TERM; touch $D/aside; while true; do sleep 0.02; done")),
		b.sh("after", "until test -e $D/aside; do sleep 0.02; done"),
	}
	shareVolume(j)
	b.create(j)
	seen := succeeds(b)
	main, side := containerState(seen, cluster.ContainerBenchmark).Terminated, containerState(seen, "aside").Terminated
	if side == nil || side.ExitCode != 0 {
		b.Fatalf("the sidecar is %+v, want it to have ended well", containerState(seen, "aside"))
	}
	if main.StartedAt.Before(&side.StartedAt) || side.FinishedAt.Before(&main.FinishedAt) {
		b.Errorf("the sidecar ran from %s to %s, the benchmark from %s to %s", side.StartedAt, side.FinishedAt,
			main.StartedAt, main.FinishedAt)
	}
}

// stepsAtEnd has two sidecars that do something when they are told to end. The last begins, whatever ended the others.
func stepsAtEnd(b *fixture, broken bool) {
	j := b.job("true")
	step := func(name, order string) corev1.Container {
		return asSidecar(b.sh(name, "trap 'echo "+name+" >> $D/order; test \"$(echo $(cat $D/order))\" = \""+order+
			"\" && exit 3; exit 4' TERM; touch $D/"+name+"; while true; do sleep 0.02; done"))
	}
	before := "until test -e $D/one && test -e $D/two; do sleep 0.02; done"
	if broken {
		before += "; exit 1"
	}
	j.Spec.Template.Spec.InitContainers = []corev1.Container{step("two", "one two"), step("one", "one"), b.sh("before", before)}
	shareVolume(j)
	b.create(j)
	want := result{
		Succeeded: 1, Condition: batchv1.JobComplete, Reason: "CompletionsReached",
		Phase: corev1.PodSucceeded, ExitReason: "Completed",
	}
	if broken {
		want = result{Failed: 1, Condition: batchv1.JobFailed, Reason: "BackoffLimitExceeded", Phase: corev1.PodFailed}
	}
	seen := check(b, want)
	one, two := containerState(seen, "one").Terminated, containerState(seen, "two").Terminated
	if one == nil || two == nil || one.ExitCode != 3 || two.ExitCode != 3 {
		b.Errorf("the sidecars ended as %+v and %+v", one, two)
	}
}

func sidecarsEndBackwards(b *fixture) { stepsAtEnd(b, false) }

func sidecarsOutliveAFailure(b *fixture) { stepsAtEnd(b, true) }

func crash(b *fixture) {
	j := b.job("until test -e $D/twice; do sleep 0.02; done")
	j.Spec.Template.Spec.InitContainers = []corev1.Container{
		asSidecar(b.sh("aside", "if test -e $D/once; then touch $D/twice; exec sleep 60; fi; touch $D/once; exit 1")),
	}
	shareVolume(j)
	b.create(j)
	seen := succeeds(b)
	if n := containerStatus(seen, "aside").RestartCount; n < 1 {
		b.Errorf("the sidecar was started again %d times", n)
	}
}

func environment(b *fixture) {
	j := b.job(`
		test "$PLAIN" = plain || exit 11
		test "$REF" = "a plain b" || exit 12
		test "$ESCAPED" = '$$(PLAIN)' || exit 13
		test "$NONE" = '$(NOSUCH)' || exit 14
		test "$FROM_CONFIG" = config || exit 15
		test "$FROM_SECRET" = secret || exit 16
		test "$P_whole" = whole || exit 17
		test -n "$UID_" && test "$UID_" != "$NAME" || exit 18
		test "$NAMESPACE" = "` + b.suite.Scope + `" || exit 19
		test "$RUN" = "` + "$(RUN_AGAIN)" + `" || exit 20
		test "${OPTIONAL-unset}" = unset || exit 21
		test "$0 $1" = "zero plain" || exit 22`)
	c := &j.Spec.Template.Spec.Containers[0]
	c.Args = []string{"zero", "$(PLAIN)"}
	yes := true
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	config, secret := corev1.LocalObjectReference{Name: b.run + "-config"}, corev1.LocalObjectReference{Name: b.run + "-secret"}
	c.EnvFrom = []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: config}}}
	c.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "plain"},
		{Name: "REF", Value: "a $(PLAIN) b"},
		{Name: "ESCAPED", Value: "$$(PLAIN)"},
		{Name: "NONE", Value: "$(NOSUCH)"},
		{Name: "FROM_CONFIG", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: config,
			Key:                  "key",
		}}},
		{Name: "FROM_SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: secret,
			Key:                  "key",
		}}},
		{Name: "OPTIONAL", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: secret,
			Key:                  "nosuch", Optional: &yes,
		}}},
		{Name: "UID_", ValueFrom: field("metadata.uid")},
		{Name: "NAME", ValueFrom: field("metadata.name")},
		{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
		{Name: "RUN", ValueFrom: field("metadata.labels['" + cluster.LabelRun + "']")},
		{Name: "RUN_AGAIN", Value: "$(RUN)"},
	}
	b.create(b.configMap(map[string]string{"key": "config", "whole": "whole"}), b.secret(map[string][]byte{"key": []byte("secret")}), j)
	succeeds(b)
}

func files(b *fixture) {
	j := b.job(`
		test "$(cat /etc/bai-test/config/key)" = config || exit 11
		test "$(cat /etc/bai-test/secret/renamed)" = secret || exit 12
		test "$(cat /srv/bai-test/only/deep)" = config || exit 13
		test "$(cat $D/sub/file)" = mine || exit 14
		test "$(pwd)" = /bai/sub || exit 15
		test -x /etc/bai-test/config/key || exit 16
		echo x > /etc/bai-test/config/new && exit 17
		test "$(cat /data-of-test)" = mine || exit 18
		echo more > /dev/shm/x && test "$(cat /dev/shm/x)" = more || exit 19`)
	spec := &j.Spec.Template.Spec
	config, mode := corev1.LocalObjectReference{Name: b.run + "-config"}, int32(0o555)
	spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: config,
			DefaultMode:          &mode,
		}}},
		{Name: "deep", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: config,
			Items:                []corev1.KeyToPath{{Key: "key", Path: "only/deep"}},
		}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: b.run + "-secret",
			Items:      []corev1.KeyToPath{{Key: "key", Path: "renamed"}},
		}}},
		{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
	spec.InitContainers = []corev1.Container{b.sh("write", "mkdir $D/sub; printf mine > $D/sub/file")}
	shareVolume(j)
	c := &spec.Containers[0]
	c.WorkingDir = pod.Dir + "/sub"
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: "config", MountPath: "/etc/bai-test/config", ReadOnly: true},
		corev1.VolumeMount{Name: "secret", MountPath: "/etc/bai-test/secret"},
		corev1.VolumeMount{Name: "deep", MountPath: "/srv/bai-test"},
		corev1.VolumeMount{Name: "shared", MountPath: "/data-of-test", SubPath: "sub/file"},
		corev1.VolumeMount{Name: "shm", MountPath: "/dev/shm"})
	if b.suite.NoNamespaces {
		var refused *cluster.RefusedError
		if err := b.cluster.Create(b.Context(), j); !errors.As(err, &refused) || refused.Reason != string(event.NeedsNamespaces) {
			b.Errorf("create: %v, want a refusal as NeedsNamespaces", err)
		}
		return
	}
	b.create(b.configMap(map[string]string{"key": "config"}), b.secret(map[string][]byte{"key": []byte("secret")}), j)
	succeeds(b)
}
