package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// TestATaskIsDoneWithoutABroker runs the program of a cluster's Job to its end.
func TestATaskIsDoneWithoutABroker(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "dogs") }))
	defer site.Close()
	dir := t.TempDir()
	file := writeFile(t, fmt.Sprintf("store = %q\n[log]\nlevel = \"error\"\n[kafka]\nbrokers = [\"127.0.0.1:1\"]\n[objects]\nurl = %q\n[fetcher.sources]\nnetworks = [\"loopback\"]\n",
		filepath.Join(dir, "bai.db"), "file://"+dir+"/objects"))
	docs, err := sqlite.Open(t.Context(), filepath.Join(dir, "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer docs.Close() //nolint:errcheck // it is not used any more
	task := download.Task{Source: dataset.Source{URL: site.URL}, RequestedAt: time.Now(), Number: 1}
	if err := store.Create(t.Context(), docs, store.KindOrder, "job/"+task.Source.Key(), task); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args, name := taskOf([]string{"-config", file, download.TransferFlag, task.Source.Key()})
	for range 2 { // the second time there is nothing to do
		if err := program.Run(ctx, "fetcher", args, settingsFor(name)); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := filepath.Glob(dir + "/objects/objects/*")
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %q, %v", objects, err)
	}
	if b, err := os.ReadFile(objects[0]); err != nil || string(b) != "dogs" {
		t.Errorf("the object store has %q, %v", b, err)
	}
}

func TestWhichTaskIsToBeDone(t *testing.T) {
	for name, tt := range map[string]struct{ args, others, want string }{
		"none":                  {"-config f", "-config f", ""},
		"one":                   {"-config f -transfer k", "-config f", "k"},
		"one, before the rest":  {"-transfer k -config f", "-config f", "k"},
		"the flag, and no task": {"-config f -transfer", "-config f -transfer", ""},
	} {
		others, task := taskOf(strings.Fields(tt.args))
		if diff := cmp.Diff(strings.Fields(tt.others), others); diff != "" || task != tt.want {
			t.Errorf("%s: task %q, others (-want +got):\n%s", name, task, diff)
		}
	}
}

func TestTheTemplateOfJobsIsCheckedAtTheStart(t *testing.T) {
	const good = "apiVersion: batch/v1\nkind: Job\nmetadata: {namespace: a}\nspec: {template: {spec: {containers: [{name: fetcher, image: x:1}]}}}\n"
	for name, tt := range map[string]struct{ text, want string }{
		"it is good":        {good, ""},
		"it is no Job":      {"spec: {templat: {}}\n", "unknown field"},
		"it has no place":   {"spec: {}\n", "metadata.namespace: is needed"},
		"it has no program": {"metadata: {namespace: a}\n", "has 0, want the fetcher alone"},
		"it has no image":   {strings.Replace(good, ", image: x:1", "", 1), "containers[0].image: is needed: write it, or set " + imageVar},
	} {
		_, err := readJob(writeFile(t, tt.text), "")
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := readJob("/nowhere.yaml", "x:1"); err == nil {
		t.Error("it need not be there")
	}
}

func TestJobsRunTheImageOfTheFetcherUnlessTheirTemplateNamesOne(t *testing.T) {
	const shipped = "../../../deploy/kubernetes/fetch-jobs/"
	text, err := os.ReadFile(shipped + "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(string(text), "- name: fetcher\n", "- name: fetcher\n        image: mine:2\n", 1)
	for want, text := range map[string]string{"registry.example.org/fetcher:1": string(text), "mine:2": named} {
		job, err := readJob(writeFile(t, text), "registry.example.org/fetcher:1")
		if err != nil {
			t.Fatal(err)
		}
		if got := job.Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("jobs run %q, want %q", got, want)
		}
	}
	deployment, err := os.ReadFile(shipped + "fetcher.yaml")
	if err != nil || !strings.Contains(string(deployment), "{name: "+imageVar+", ") {
		t.Errorf("the deployment does not set %s: %v", imageVar, err)
	}
}
