package parser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// withSecret is a descriptor whose manifest names a Secret, on line 20.
const withSecret = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 1
strategy = "manifest"
[env]
docker_image = "alpine:3"
[manifest]
objects = '''
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: train}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          volumes:
          - {name: a, secret: {secretName: aws}}
'''
`

func TestAManifestIsHeldToTheSettingsOfItsPlatform(t *testing.T) {
	type lists = descriptors.Allowlists
	const (
		secret = `f.toml:20:44: manifest.objects: descriptors of the namespace "default" may not name the Secret "aws" (the platform's settings have to allow it: [executor.pods.allow."default"] secrets = ["aws"])`
		kind   = "f.toml:11:1: manifest.objects: this platform takes no TFJob.v1.kubeflow.org (its kinds are Job.v1.batch, ConfigMap.v1, Service.v1, JobSet.v1alpha2.jobset.x-k8s.io; the platform's settings list them (executor.pods.manifests))"
		local  = "f.toml:6:12: hardware.strategy: the local cluster has no controllers that run objects of a manifest (run it on a platform with Kubernetes, or write another strategy)"
	)
	for name, row := range map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"nothing is known of them":      {parser.Parser{}, nil},
		"a Secret that is not allowed":  {parser.Parser{Allow: lists{}}, []string{secret}},
		"a Secret that is allowed":      {parser.Parser{Allow: lists{"*": {Secrets: []string{"a*"}}}}, nil},
		"a kind that is not listed":     {parser.Parser{Manifests: []string{"JobSet.v1alpha2.jobset.x-k8s.io"}}, []string{kind}},
		"a kind that is listed":         {parser.Parser{Manifests: []string{"TFJob.v1.kubeflow.org"}}, nil},
		"one machine":                   {parser.Parser{OneMachine: true}, []string{local}},
		"it was accepted, and all goes": {parser.Parser{OneMachine: true, Manifests: []string{}, Allow: lists{}, Accepted: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := row.parser.Parse("f.toml", []byte(withSecret))
			var got []string
			for _, f := range faults {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFaultIsInTheLineOfTheFileWhateverTheQuotes(t *testing.T) {
	head, _, _ := strings.Cut(withSecret, "objects")
	for objects, want := range map[string]string{
		"objects = '''\na: 1\na: 2\n'''":       "12:1",
		"objects = '''a: 1\na: 2\n'''":         "11:1",
		"objects = \"\"\"\na: 1\na: 2\n\"\"\"": "12:1",
		"objects = \"a: 1\\na: 2\"":            "10:11",
		"objects = \"\"\"a: 1\\n\\na: 2\"\"\"": "10:11",
	} {
		_, faults := parser.Parse("f.toml", []byte(head+objects+"\n"))
		twice := slices.IndexFunc(faults, func(f parser.Fault) bool { return strings.Contains(f.Message, "there twice") })
		if twice < 0 || !strings.HasPrefix(faults[twice].String(), "f.toml:"+want+":") {
			t.Errorf("%s: %v", objects, faults)
		}
	}
}
