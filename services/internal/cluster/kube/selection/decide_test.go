package selection_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube/selection"
)

// selecting returns an object that selects pods.
func selecting(selector string) *batchv1.Job {
	j := &batchv1.Job{}
	j.Name, j.Namespace, j.CreationTimestamp = "bai-r1-1", "s", metav1.NewTime(time.Unix(100, 0))
	j.Labels = map[string]string{cluster.LabelRun: "r1", cluster.LabelAttempt: "1", cluster.LabelRole: "benchmark", cluster.LabelCopy: "0"}
	j.Annotations = map[string]string{cluster.AnnotationPodSelector: selector}
	return j
}

func TestAPodIsOfARunOnlyIfALabelHasTheNameOfItsObject(t *testing.T) {
	of := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "s", Labels: labels, CreationTimestamp: metav1.NewTime(time.Unix(100, 0))}}
	}
	mine := map[string]string{"of": "bai-r1-1", "app": "x"}
	older, elsewhere := of(mine), of(mine)
	older.CreationTimestamp, elsewhere.Namespace = metav1.NewTime(time.Unix(99, 0)), "other"
	for name, row := range map[string]struct {
		selector string
		pod      *corev1.Pod
		want     bool
	}{
		"one with the name":                      {"of=bai-r1-1", of(mine), true},
		"one of another run":                     {"of=bai-r1-1", of(map[string]string{"of": "bai-r2-1"}), false},
		"one with the labels of another run":     {"of=bai-r1-1", of(map[string]string{"of": "bai-r1-1", cluster.LabelRun: "r2"}), false},
		"one that is older than the object":      {"of=bai-r1-1", older, false},
		"one of another namespace":               {"of=bai-r1-1", elsewhere, false},
		"any, by a selector without the name":    {"app=x", of(mine), false},
		"any, by a selector with another name":   {"of=bai-r2-1", of(map[string]string{"of": "bai-r2-1"}), false},
		"any, by a selector that is none":        {"of=", of(map[string]string{"of": ""}), false},
		"one that meets only a part of them all": {"of=bai-r1-1,app=y", of(mine), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := selection.Attach(selecting(row.selector), []*corev1.Pod{row.pod})
			if len(got) > 0 != row.want {
				t.Fatalf("%v", got)
			}
			if row.want && (got[0].Labels[cluster.LabelRun] != "r1" || got[0].Labels[cluster.LabelCopy] != "0" || row.pod.Labels[cluster.LabelRun] != "") {
				t.Errorf("%v, from %v", got[0].Labels, row.pod.Labels)
			}
		})
	}
}

// FuzzSelectorsMeanWhatTheyMeanToTheCluster has the API server's own parser read selectors.
func FuzzSelectorsMeanWhatTheyMeanToTheCluster(f *testing.F) {
	for _, seed := range []string{"app=x", "role in (a,b),!old", "a notin (x),b!=c", "a==", "example.com/a in ()", "a", "in in (in)"} {
		f.Add(seed, "a", "x")
	}
	f.Fuzz(func(t *testing.T, text, key, value string) {
		s, err := manifest.ParseSelector(text)
		if err != nil {
			return
		}
		theirs, err := labels.Parse(s.String())
		if err != nil {
			t.Fatalf("%q is read as %q: %v", text, s, err)
		}
		for _, set := range []map[string]string{nil, {key: value}, {key: "x", "role": "a"}, {"app": "x"}} {
			if s.Matches(set) != theirs.Matches(labels.Set(set)) {
				t.Errorf("%q matches %v: %t, and %q: %t", text, set, s.Matches(set), theirs, theirs.Matches(labels.Set(set)))
			}
		}
	})
}
