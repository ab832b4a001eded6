package main_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestWhatASubmissionSays(t *testing.T) {
	helloFrom := func(uri string) *baiv1.Origination {
		return &baiv1.Origination{Uri: uri, Sha256: baitest.Digest(helloText)}
	}
	sent := func(r *baiv1.SubmitRunRequest) *baiv1.SubmitRunRequest {
		r.Owner, r.IdempotencyKey = "ann", "k"
		if r.GetDescriptorToml() == nil {
			r.DescriptorToml = []byte(helloText)
		}
		return r
	}
	for args, want := range map[string]*baiv1.SubmitRunRequest{
		"submit stored:hello": sent(&baiv1.SubmitRunRequest{DescriptorFile: "stored:hello@2", Origination: helloFrom("stored:hello@2")}),
		"run https://example.org/hello.toml --name n --namespace pets --label a=b=c --label d= --set env.vars.X=y": sent(&baiv1.SubmitRunRequest{
			DescriptorFile: "https://example.org/hello.toml", Origination: helloFrom("https://example.org/hello.toml"), Name: "n", Namespace: "pets",
			Labels: map[string]string{"a": "b=c", "d": ""}, Overrides: []*baiv1.Override{{Path: "env.vars.X", Value: "y"}},
		}),
		// Earlier overrides are kept, unless the user sets them anew; labels of the
		// descriptor are its own.
		"rerun hello --set hardware.cpus=8 --label z=1": sent(&baiv1.SubmitRunRequest{
			DescriptorFile: "hello.toml", Origination: &baiv1.Origination{Uri: "stored:hello@1", Sha256: baitest.Digest("# the first version\n" + helloText)},
			RerunOf: helloID, Namespace: "default", Labels: map[string]string{"task_name": "hello", "z": "1"},
			Overrides: []*baiv1.Override{{Path: "env.vars.GREETING", Value: "good day"}, {Path: "hardware.cpus", Value: "8"}},
		}),
		"rerun hello --set env.vars.GREETING=night --namespace pets --label task_name=x": sent(&baiv1.SubmitRunRequest{
			DescriptorFile: "hello.toml", Origination: &baiv1.Origination{Uri: "stored:hello@1", Sha256: baitest.Digest("# the first version\n" + helloText)},
			RerunOf: helloID, Namespace: "pets", Labels: map[string]string{"task_name": "x"},
			Overrides: []*baiv1.Override{{Path: "env.vars.GREETING", Value: "night"}},
		}),
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			p := newFixture(t, newYear)
			finishSubmitted(p)
			got := runPiped(t, p.Addr(), append(strings.Fields(args), "--idempotency-key", "k")...)
			if got.code != 0 || len(p.Submits()) != 1 {
				t.Fatal(got)
			}
			if diff := cmp.Diff(want, p.Submits()[0], protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestADescriptorIsReadForTheTeamOfTheContext(t *testing.T) {
	p := baitest.Start(t)
	h := home{t, t.TempDir()}
	h.must("config", "set-context", "pets", "--server", p.Addr(), "--namespace", "pets")
	h.must("init", "d.toml")
	if got := h.must("descriptors", "push", "cat", "d.toml"); got != "stored:cat@1\n" {
		t.Error(got)
	}
	h.must("submit", "stored:cat")
	if team := p.Submits()[0].GetNamespace(); team != "pets" {
		t.Errorf("submitted for team %q", team)
	}
	expect(t, h.run(nil, "submit", "stored:cat", "--namespace", "default"), 2, `no descriptor "cat" is kept (see baictl descriptors list)`)
}
