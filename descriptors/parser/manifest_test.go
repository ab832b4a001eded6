package parser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
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

// attached is a descriptor whose manifest came from a file, with further lines of that table.
func attached(t *testing.T, content string, more ...string) []byte {
	t.Helper()
	head, _, _ := strings.Cut(withSecret, "objects")
	text := []byte(head + "file = \"sub/o.yaml\"\n" + strings.Join(more, "\n"))
	a, ok := parser.AttachmentOf(text)
	if !ok || a.Name != "sub/o.yaml" {
		t.Fatalf("%+v %t", a, ok)
	}
	whole, faults := a.Attach("dir/f.toml", text, []byte(content))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if again, more := parser.AttachmentOf(whole); more {
		t.Errorf("attached, and named again: %+v", again)
	}
	return whole
}

func TestAFaultInAFileHasItsPlaceThere(t *testing.T) {
	const content = "# \"ä\\u00e4\"\tß\r\nkind: Job # \"\napiVersion: batch/v1\nmetadata: {name: a}\n" +
		"spec: {template: {spec: {'x\\': \"ö\", hostPID: true, containers: [{name: a, image: b}]}}}\n"
	const fault = "dir/sub/o.yaml:5:37: manifest.file: hostPID is not for runs (leave it out)"
	for name, set := range map[string][]parser.Override{
		"as it is": nil, "with an override before it": {{Path: "info.description", Value: "'''\na\nb'''"}}, "with one behind it": {{Path: "manifest.copies", Value: "3"}},
	} {
		_, _, faults := parser.Parser{}.ParseWith("dir/f.toml", attached(t, content, "copies = 2"), set)
		if len(faults) != 1 || faults[0].String() != fault {
			t.Errorf("%s: %v", name, faults)
		}
	}
	_, _, faults := parser.Parser{}.ParseWith("dir/f.toml", attached(t, content, "copies = 2"), []parser.Override{{Path: "manifest.copies", Value: "no"}})
	if len(faults) != 2 || faults[0].String() != fault || faults[1].File != "--set manifest.copies" {
		t.Errorf("%v", faults)
	}
}

func TestASweepVariesTheTextOfAFile(t *testing.T) {
	const content = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: {{n}}, template: {spec: {containers: [{name: a, image: 'b:{{tag}}'}]}}}\n"
	text := attached(t, content, "[sweep.product]", "n = [1, 2]", "tag = ['x']")
	p, faults := sweep.Read(parser.Parser{}, "f.toml", text)
	if p == nil || p.Cells() != 2 {
		t.Fatal(faults)
	}
	d, faults := parser.Parse("f.toml", p.Descriptor(1))
	if d == nil || !strings.Contains(d.Manifest.File.Text, "parallelism: 2, ") || !strings.Contains(d.Manifest.File.Text, "b:x") {
		t.Errorf("%v %v", d, faults)
	}
	_, faults = sweep.Read(parser.Parser{}, "f.toml", attached(t, content, "[sweep.product]", "n = [1, 2]"))
	if len(faults) != 1 || !strings.HasPrefix(faults[0].String(), "sub/o.yaml:4:") || !strings.Contains(faults[0].Message, "{{tag}}") {
		t.Errorf("%v", faults)
	}
}

func TestAFileIsNamedOrComesWithItsText(t *testing.T) {
	head, _, _ := strings.Cut(withSecret, "objects")
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: b}]}}}}"
	for file, want := range map[string]string{
		`{name = "o.yaml", text = "` + job + `"}`: "",
		`{name = "o.yaml", text = ""}`:            "has no object",
		`{name = "o.yaml"}`:                       "has no name, or no text",
		`{text = ""}`:                             "has no name, or no text",
		`{name = "o.yaml", text = 1}`:             "has no name, or no text",
		`{name = "../o.yaml", text = ""}`:         "leaves the folder",
		`{name = "o.yaml", text = "", more = ""}`: `"more" is not a key of a file`,
		`1`:                   "must be a string",
		`"o.yaml"`:            `the text of "o.yaml" is not here`,
		`""`:                  "is not the path of a file",
		`"a\tb"`:              "is not the path of a file",
		`'''` + "\n" + `a'''`: `the text of "a" is not here`,
		`{name = "o.yaml", text = '''` + "\na: 1\na: 2'''}": `"a" is there twice`,
	} {
		_, faults := parser.Parse("f.toml", []byte(head+"file = "+file+"\n"))
		if got := faults.Errors(); want == "" && len(got) > 0 || want != "" && (len(got) == 0 || !strings.Contains(got[0].Message, want)) {
			t.Errorf("%s: %v", file, faults)
		}
	}
}

func FuzzWhateverIsAttachedIsReadBack(f *testing.F) {
	f.Add("a: 1\n\tb \"\\ \u0085\u2028 \r\n", "{{x}}")
	f.Add("'''", "\u007f")
	f.Fuzz(func(t *testing.T, first, second string) {
		content := first + "\n" + second
		text := []byte("[manifest]\nfile = 'o.yaml'\n")
		a, ok := parser.AttachmentOf(text)
		if !ok {
			t.Fatal("no file")
		}
		whole, faults := a.Attach("f.toml", text, []byte(content))
		if len(faults) > 0 {
			return
		}
		var read struct {
			Manifest struct{ File struct{ Name, Text string } }
		}
		if err := toml.Unmarshal(whole, &read); err != nil || read.Manifest.File.Text != strings.TrimPrefix(content, "\ufeff") {
			t.Errorf("%q: %q, %v", content, read.Manifest.File.Text, err)
		}
		_, faults = parser.Parse("f.toml", whole)
		lines := strings.Count(content, "\n") + 1
		for _, fault := range faults {
			if fault.File == "o.yaml" && (fault.Line < 1 || fault.Line > lines) {
				t.Errorf("%q: %v", content, fault)
			}
		}
	})
}
