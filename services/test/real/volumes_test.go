package real_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// TestVolumesOfEveryKindAreWhatTheAPIServerAccepts applies the objects of a run with
// shared data and volumes of every kind, as a server-side dry run.
func TestVolumesOfEveryKindAreWhatTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	scope := testCluster.Namespace(t)
	testCluster.Run(t, "label", "namespace", scope, "pod-security.kubernetes.io/enforce=privileged", "--overwrite") // every key has some that need rights
	for _, file := range []string{"../../plan/transpile/testdata/volumes.toml", "../../../descriptors/examples/every-key.toml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, faults := parser.Parse(file, text)
		if err := faults.Err(); err != nil {
			t.Fatal(err)
		}
		manifest, err := transpile.Manifest(d, text, false, transpile.Settings{Scope: scope, Zones: map[string]string{"use1-az1": "us-east-1a"}})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(manifest, []byte("kind: PersistentVolumeClaim")) {
			t.Errorf("%s has no claims", file)
		}
		wantAccepted(t, testCluster, manifest)
	}
}

// TestAFetchJobIsWhatTheAPIServerAccepts applies the Job that the fetcher would
// create from the template that is deployed, in a namespace that holds pods to
// the same rules.
func TestAFetchJobIsWhatTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	scope := testCluster.Namespace(t)
	testCluster.Run(t, "label", "namespace", scope, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
	text, err := os.ReadFile("../../../deploy/kubernetes/fetch-jobs/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template batchv1.Job
	if err := yaml.UnmarshalStrict(text, &template); err != nil {
		t.Fatal(err)
	}
	template.Spec.Template.Spec.Containers[0].Image = fetcherImage
	if err := download.CheckJob(template); err != nil {
		t.Fatal(err)
	}
	template.Namespace = scope
	task := download.Task{Source: dataset.Source{URL: "s3://cats/"}, Number: int(time.Now().UnixMilli())}
	job, err := json.Marshal(download.JobOf(template, task.Source.Key(), task, task.Source.URL, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	wantAccepted(t, testCluster, job)
}

// wantAccepted fails unless the API server would take a manifest, and knows all that
// is in it.
func wantAccepted(t *testing.T, testCluster *testbed.Cluster, manifest []byte) {
	t.Helper()
	warnings, err := testCluster.DryRun(t.Context(), "default", manifest)
	wantNoFault(t, warnings, err)
}

// wantNoFault fails unless a dry run found no fault.
func wantNoFault(t *testing.T, warnings []string, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	if len(warnings) > 0 {
		t.Errorf("it warns:\n%s", strings.Join(warnings, "\n"))
	}
}
