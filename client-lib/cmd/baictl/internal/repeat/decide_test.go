package repeat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/repeat"
	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestWhatCannotBeRepeatedIsSaid(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	pinned := func(change func(*descriptors.Descriptor)) *descriptors.Descriptor {
		d := &descriptors.Descriptor{
			Hardware: descriptors.Hardware{InstanceType: "p3.2xlarge"},
			Env:      descriptors.Env{DockerImage: "a@sha256:" + digest},
			Data:     descriptors.Data{Sources: []descriptors.Source{{Src: "https://h/x", Path: "/x", SHA256: digest}}},
		}
		change(d)
		return d
	}
	from := &baiv1.Origination{Uri: "https://h/d.toml", Sha256: digest}
	for name, tt := range map[string]struct {
		run  *baiv1.Run
		d    *descriptors.Descriptor
		now  repeat.OriginState
		ran  *baiv1.Environment
		want []string
	}{
		"all of it can be": {d: pinned(func(*descriptors.Descriptor) {})},
		"an image by tag":  {d: pinned(func(d *descriptors.Descriptor) { d.Env.DockerImage = "a:1" }), want: []string{"the image: a:1 is named by a tag"}},
		"a server's image": {d: pinned(func(d *descriptors.Descriptor) { d.Server = &descriptors.Server{}; d.Server.Env.DockerImage = "b" }), want: []string{"the server's image: b"}},
		"a role's image": {d: pinned(func(d *descriptors.Descriptor) {
			d.Roles = []descriptors.Role{{Name: "a"}, {Name: "b", DockerImage: "c:1"}}
		}), want: []string{"the image of role b: c:1 is named by a tag"}},
		"an md5 holds data fast": {d: pinned(func(d *descriptors.Descriptor) { d.Data.Sources[0].SHA256, d.Data.Sources[0].MD5 = "", "x" })},
		"data without digest": {
			run:  &baiv1.Run{Data: []*baiv1.DataSet{{Path: "/x", Sha256: digest}}},
			d:    pinned(func(d *descriptors.Descriptor) { d.Data.Sources[0].SHA256 = "" }),
			want: []string{"the data at /x: nothing holds https://h/x to what it was (add sha256 = \"" + digest},
		},
		"data of another role at the same place": {
			run:  &baiv1.Run{Data: []*baiv1.DataSet{{Path: "/x", Source: "https://h/y", Sha256: "cd"}, {Path: "/x", Source: "https://h/x", Sha256: digest}}},
			d:    pinned(func(d *descriptors.Descriptor) { d.Data.Sources[0].SHA256 = "" }),
			want: []string{"the data at /x: nothing holds https://h/x to what it was (add sha256 = \"" + digest},
		},
		"data that were not fetched": {
			d:    pinned(func(d *descriptors.Descriptor) { d.Data.Sources[0].SHA256 = "" }),
			want: []string{"the data at /x: nothing holds https://h/x to what it was, and what it was is not known"},
		},
		"a server's model": {d: pinned(func(d *descriptors.Descriptor) {
			d.Server = &descriptors.Server{Models: []descriptors.Source{{Path: "/m"}}}
		}), want: []string{"the data at /m"}},
		"secret files":     {d: pinned(func(d *descriptors.Descriptor) { d.Env.SecretFiles = map[string]descriptors.SecretRef{"/root/key": {}} }), want: []string{"the secrets: /root/key:"}},
		"secrets":          {d: pinned(func(d *descriptors.Descriptor) { d.Env.Secrets = map[string]descriptors.SecretRef{"B": {}, "A": {}} }), want: []string{"the secrets: A, B:"}},
		"any machine":      {d: pinned(func(d *descriptors.Descriptor) { d.Hardware.InstanceType = "" }), want: []string{"the machine: any"}},
		"the local engine": {d: pinned(func(d *descriptors.Descriptor) { d.Info.ExecutionEngine = "local" }), want: []string{"the programs:"}},
		"the machine's own programs, not an image's": {
			d: pinned(func(d *descriptors.Descriptor) {
				d.Env.DockerImage = "a:1"
				d.ML = &descriptors.ML{BenchmarkCode: "/usr/bin/sysbench cpu run"}
			}),
			ran: &baiv1.Environment{Pods: []*baiv1.PodEnvironment{{
				ImageDigest: "none", Tools: map[string]string{"python3": "3.11.2"},
				Machine: &baiv1.Machine{Node: "laptop", Kernel: "6.8.0", Os: "Debian 12", Architecture: "amd64"},
			}}},
			want: []string{"the programs: no image was pulled: the machine's own programs ran, on laptop, Debian 12, Linux 6.8.0, amd64: python3 (3.11.2), sysbench (version not known) (install"},
		},
		"an image that the cluster ran": {
			d: pinned(func(*descriptors.Descriptor) {}), ran: &baiv1.Environment{Pods: []*baiv1.PodEnvironment{{ImageDigest: "sha256:" + digest}}},
		},
		"code sent along": {d: pinned(func(d *descriptors.Descriptor) { d.ML = &descriptors.ML{Script: &descriptors.Script{Archive: "c.tar"}} }), want: []string{"the code: c.tar"}},
		"code that is known": {
			run:  &baiv1.Run{Script: &baiv1.Script{Sha256: digest}},
			d:    pinned(func(d *descriptors.Descriptor) { d.ML = &descriptors.ML{Script: &descriptors.Script{Archive: "c.tar"}} }),
			want: []string{"the code: it was sent along, with sha256 " + digest},
		},
		"an origin as it was":  {run: &baiv1.Run{Origination: from}, d: pinned(func(*descriptors.Descriptor) {}), now: repeat.OriginState{Checked: true, Sha256: digest}},
		"an origin that moved": {run: &baiv1.Run{Origination: from}, d: pinned(func(*descriptors.Descriptor) {}), now: repeat.OriginState{Checked: true, Sha256: "cd"}, want: []string{"the origin: https://h/d.toml is another text now (sha256 cd, it was abababababab)"}},
		"an origin that went":  {run: &baiv1.Run{Origination: from}, d: pinned(func(*descriptors.Descriptor) {}), now: repeat.OriginState{Checked: true, Fault: "gone"}, want: []string{"the origin: https://h/d.toml cannot be read now: gone"}},
		"an invalid text":      {want: []string{"the descriptor: it is invalid"}},
		"no text":              {run: &baiv1.Run{Id: "x"}, want: []string{"the descriptor: the platform does not have it"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := tt.run
			if run == nil {
				run = &baiv1.Run{}
			}
			if run.GetId() == "" {
				run.DescriptorToml = "text"
			}
			same(t, tt.want, repeat.Gaps(run, tt.d, tt.ran, tt.now))
		})
	}
}

// same checks how each gap begins.
func same(t *testing.T, want []string, got []repeat.Gap) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %q", got, want)
	}
	for i, g := range got {
		if text := g.Subject + ": " + g.Why + " (" + g.Remedy + ")"; !strings.HasPrefix(text, want[i]) {
			t.Errorf("got %s, want %s", text, want[i])
		}
	}
}

func TestTheCommandsCanBePastedIntoAShell(t *testing.T) {
	run := &baiv1.Run{
		Id: "r1", Name: "n", Namespace: "my team", Labels: map[string]string{"a": "it's", "task_name": "t", "own": "1", "own2": "changed"},
		DescriptorFile: "my file.toml", Overrides: []*baiv1.Override{{Path: "info.description", Value: `"a b"`}},
	}
	d := &descriptors.Descriptor{Info: descriptors.Info{TaskName: "t", Labels: map[string]string{"own": "1", "own2": "2"}}}
	want := []string{
		"baictl rerun r1",
		`baictl repro r1 --descriptor > r1.toml && baictl submit r1.toml --namespace 'my team' --label 'a=it'\''s' --label own2=changed`,
	}
	if diff := cmp.Diff(want, repeat.Commands(run, repeat.Labels(run, d))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := repeat.OriginalCommand(run, repeat.Labels(run, d)), `baictl submit 'my file.toml' --set 'info.description="a b"' --name n --namespace 'my team' --label 'a=it'\''s' --label own2=changed`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	run.Script = &baiv1.Script{Sha256: "ab"}
	if got, want := repeat.Commands(run, nil)[1], "baictl repro r1 --descriptor > r1.toml && baictl submit r1.toml --script DIR --namespace 'my team'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	run.Origination, run.Lineage = &baiv1.Origination{Uri: "stored:x@3"}, &baiv1.Lineage{RerunOf: "r0"}
	if got, want := repeat.OriginalCommand(run, repeat.Labels(run, d)), `baictl rerun r0 --set 'info.description="a b"' --name n`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := len(repeat.Labels(run, nil)); got != 4 {
		t.Errorf("%d labels of a run whose descriptor is invalid, want all 4", got)
	}
}
