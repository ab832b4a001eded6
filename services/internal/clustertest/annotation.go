package clustertest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// annotationOfTests is the name of the annotation that the tests set.
const annotationOfTests = "benchmark-ai.dev/test"

// annotator returns the driver as one that annotates pods. The test is skipped for a driver whose pods need no annotations.
func (b *fixture) annotator() cluster.Annotator { //nolint:ireturn // whichever driver it is
	b.Helper()
	a, ok := b.cluster.(cluster.Annotator)
	if !ok {
		b.Skip("this cluster annotates no pods")
	}
	return a
}

// annotates: an annotation is set on the pod that is named, again without an error, and on no other pod of the name.
func annotates(b *fixture) {
	a := b.annotator()
	b.create(b.job("exec sleep 60"))
	p := b.await("the pod", func(s cluster.Snapshot) bool { return len(s.Pods) == 1 }).Pods[0]
	another, gone := p, p
	another.UID = "00000000-0000-0000-0000-000000000000"
	gone.Name += "-gone"
	for _, set := range []struct {
		pod   corev1.Pod
		value string
	}{{p, "first"}, {p, "second"}, {p, "second"}, {another, "another's"}, {gone, "nobody's"}} {
		if err := a.Annotate(b.Context(), set.pod, annotationOfTests, set.value); err != nil {
			b.Errorf("annotate %s of UID %s: %v", set.pod.Name, set.pod.UID, err)
		}
	}
	seen := b.await("the annotation", func(s cluster.Snapshot) bool {
		return len(s.Pods) == 1 && s.Pods[0].Annotations[annotationOfTests] != ""
	})
	if got := seen.Pods[0].Annotations[annotationOfTests]; got != "second" {
		b.Errorf("the annotation is %q", got)
	}
}

// seesAnnotations: a volume with an annotation shows the value that is set while the program runs.
func seesAnnotations(b *fixture) {
	a := b.annotator()
	j := b.job(`until test "$(cat /notes/test)" = value; do sleep 0.05; done; exit 0`)
	field := &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotationOfTests + "']"}
	notes := &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "test", FieldRef: field}}}
	s := &j.Spec.Template.Spec
	s.Volumes = []corev1.Volume{{Name: "notes", VolumeSource: corev1.VolumeSource{DownwardAPI: notes}}}
	mount(&s.Containers[0], "notes", "/notes", "")
	b.create(j)
	seen := b.await("the program", func(s cluster.Snapshot) bool {
		return containerState(s, cluster.ContainerBenchmark).Running != nil
	})
	if err := a.Annotate(b.Context(), seen.Pods[0], annotationOfTests, "value"); err != nil {
		b.Fatal(err)
	}
	succeeds(b)
}
