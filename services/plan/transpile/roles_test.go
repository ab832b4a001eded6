package transpile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/roles"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
)

// checkStrict fails if a document has a field that Kubernetes does not know.
func checkStrict(t *testing.T, text []byte) {
	t.Helper()
	for document := range bytes.SplitSeq(text, []byte("---\n")) {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		var o cluster.Object
		switch kind.APIVersion + "/" + kind.Kind {
		case "batch/v1/Job":
			o = &batchv1.Job{}
		case "v1/ConfigMap":
			o = &corev1.ConfigMap{}
		case "v1/Secret":
			o = &corev1.Secret{}
		case "v1/Service":
			o = &corev1.Service{}
		case "networking.k8s.io/v1/NetworkPolicy":
			o = &networkingv1.NetworkPolicy{}
		case "v1/PersistentVolumeClaim":
			o = &corev1.PersistentVolumeClaim{}
		default:
			t.Errorf("an object of kind %s/%s", kind.APIVersion, kind.Kind)
			continue
		}
		if err := yaml.UnmarshalStrict(document, o); err != nil {
			t.Errorf("%s %s: %v", kind.Kind, o.GetName(), err)
		}
	}
}

func TestAManifestIsTheSameEveryTime(t *testing.T) {
	for _, name := range []string{"minimal", "every-key", "mpi"} {
		text, err := os.ReadFile(examples + "/" + name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		d, faults := parser.Parser{}.Parse(name, text)
		if err := faults.Err(); err != nil {
			t.Fatal(err)
		}
		first, err := transpile.Manifest(d, text, false, settings)
		if err != nil {
			t.Fatal(err)
		}
		checkStrict(t, first)
		golden.Check(t, filepath.Join("testdata", name+".manifest.yaml"), first)
		for range 5 {
			if again, err := transpile.Manifest(d, text, false, settings); err != nil || !bytes.Equal(first, again) {
				t.Fatalf("another time, another manifest (%v)", err)
			}
		}
	}
}

// TestRolesOfOneRun checks what the roles of a run share.
func TestRolesOfOneRun(t *testing.T) {
	for name, tt := range map[string]struct {
		file  string
		pods  int
		await []string
	}{
		"a client waits for its server's probe": {"inference.toml", 2, []string{
			"--within=30m0s", "--every=1s", "--timeout=1s", "--successes=1",
			"http://bai-" + runID + "-1-server.benchmarks.svc:8080/ping",
		}},
		"a launcher waits for all workers": {"mpi.toml", 3, []string{
			"--within=30m0s", "--every=250ms", "--timeout=5s", "--successes=1",
			"tcp://bai-" + runID + "-1-worker-0.bai-" + runID + "-1-mpi.benchmarks.svc:2222",
			"tcp://bai-" + runID + "-1-worker-1.bai-" + runID + "-1-mpi.benchmarks.svc:2222",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := objects(t, input(t, examples+"/"+tt.file), settings)
			if p.Job != "bai-"+runID+"-1" || p.Pods != tt.pods {
				t.Errorf("job %s, %d pods", p.Job, p.Pods)
			}
			spec := podOf(t, p)
			wait := spec.InitContainers[len(spec.InitContainers)-1]
			if diff := cmp.Diff(tt.await, wait.Args); wait.Name != cluster.ContainerWait || diff != "" {
				t.Errorf("%s (-want +got):\n%s", wait.Name, diff)
			}
		})
	}
}

// pulledByRole returns the data that the pullers of a run download, by role.
func pulledByRole(t *testing.T, in transpile.Input) []string {
	t.Helper()
	whole, err := transpile.Secrets(in, settings, secret)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range whole {
		if s.Data[pod.PullFile] == nil {
			continue
		}
		var pull pod.Pull
		if err := json.Unmarshal(s.Data[pod.PullFile], &pull); err != nil {
			t.Fatal(err)
		}
		for _, d := range pull.Data {
			got = append(got, s.Labels[cluster.LabelRole]+" "+d.Path)
		}
	}
	return got
}

func TestEachRoleHasTheDataThatAreItsOwn(t *testing.T) {
	asClient := func(role string) transpile.Input {
		return replaceInDescriptor(t, input(t, examples+"/every-key.toml"), `role = "client"`, role)
	}
	for name, tt := range map[string]struct {
		in   transpile.Input
		want []string
	}{
		"a server's models are not the client's": {
			asClient(""), []string{"server /models/one.bin", "client /data/questions", "client /bai/scripts"},
		},
		"a client's may be named": {
			asClient(`role = "client"`), []string{"server /models/one.bin", "client /data/questions", "client /bai/scripts"},
		},
		"a server may have data beside its models": {
			asClient(`role = "server"`), []string{"server /data/questions", "server /models/one.bin", "client /bai/scripts"},
		},
		"workers have what names no role": {
			input(t, examples+"/mpi.toml"), []string{"worker /data/imagenet"},
		},
		"a launcher has what is asked for": {
			input(t, "testdata/launcher-data.toml"), []string{"worker /data/train", "worker /data/common", "launcher /data/plan", "launcher /data/common"},
		},
		"the one pod of a run may be named": {
			replaceInDescriptor(t, input(t, "testdata/everything.toml"), `path = "/data/a"`, "path = \"/data/a\"\nrole = \"benchmark\""), []string{"benchmark /data/a", "benchmark /data/b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, pulledByRole(t, tt.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAProbeMayAskAPortOfItsOwn: the server's Service has the port of the probe. The
// client waits for that port, and its variables have only the other ports.
func TestAProbeMayAskAPortOfItsOwn(t *testing.T) {
	p := objects(t, replaceInDescriptor(t, input(t, examples+"/inference.toml"), "port = 8080", "port = 9090"), settings)
	golden.Check(t, "testdata/probe.yaml", manifest(t, p.Objects))
	var served []int32
	for _, o := range p.Objects {
		if s, ok := o.(*corev1.Service); ok {
			for _, port := range s.Spec.Ports {
				served = append(served, port.Port)
			}
		}
	}
	if diff := cmp.Diff([]int32{8080, 8081, 9090}, served); diff != "" {
		t.Errorf("the Service's ports (-want +got):\n%s", diff)
	}
	spec := podOf(t, p)
	if wait := spec.InitContainers[len(spec.InitContainers)-1].Args; !strings.Contains(wait[len(wait)-1], ":9090/ping") {
		t.Errorf("the client waits for %q", wait)
	}
	vars := map[string]string{}
	for _, v := range spec.Containers[0].Env {
		if strings.HasPrefix(v.Name, "INFERENCE_SERVER_PORT") {
			vars[v.Name] = v.Value
		}
	}
	if diff := cmp.Diff(map[string]string{"INFERENCE_SERVER_PORT": "8080", "INFERENCE_SERVER_PORT_1": "8081"}, vars); diff != "" {
		t.Errorf("the client is told (-want +got):\n%s", diff)
	}
}

func TestAPullerIsToldWhatArchivesMayHold(t *testing.T) {
	own := settings
	own.Unpack = transpile.Unpack{MaxFiles: 7, MaxBytes: 8, Reserve: 9}
	whole, err := transpile.Secrets(input(t, examples+"/data.toml"), own, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range whole {
		var pull pod.Pull
		if err := json.Unmarshal(s.Data[pod.PullFile], &pull); err != nil {
			t.Fatal(err)
		}
		if pull.MaxFiles != 7 || pull.MaxUnpacked != 8 || pull.Reserve != 9 {
			t.Errorf("it is told %d files, %d bytes and %d to stay free", pull.MaxFiles, pull.MaxUnpacked, pull.Reserve)
		}
	}
}

// withCommand replaces the command of the example.
func withCommand(t *testing.T, in transpile.Input, toml string) transpile.Input {
	t.Helper()
	text := in.Run.Descriptor
	at, end := strings.Index(text, "benchmark_code"), strings.Index(text, "[[output.metrics]]")
	if source := strings.Index(text, "[[data.sources]]"); source >= 0 {
		end = source
	}
	in.Run.Descriptor = text[:at] + "benchmark_code = " + toml + "\n" + text[end:]
	return newInput(t, in.Run)
}

func TestVariablesOfTheServerAreKnownInArguments(t *testing.T) {
	in := withCommand(t, input(t, examples+"/inference.toml"), `"ask http://${INFERENCE_SERVER_HOST}:$(INFERENCE_SERVER_PORT_1)/${OTHER}"`)
	c := podOf(t, objects(t, in, settings)).Containers[0]
	if got, want := c.Command[len(c.Command)-1], "http://$(INFERENCE_SERVER_HOST):$(INFERENCE_SERVER_PORT_1)/${OTHER}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDollarsOfAShellReachIt(t *testing.T) {
	for word, want := range map[string]string{
		"$$":             "$$$$",
		"echo $$ $x $$y": "echo $$$$ $x $$$$y",
		"$(NAME)":        "$(NAME)",
		"$$(NAME)":       "$$(NAME)",
		"$$$x":           "$$$$$$x",
	} {
		in := withCommand(t, input(t, examples+"/hello-world.toml"), fmt.Sprintf(`"sh -c '%s'"`, word))
		c := podOf(t, objects(t, in, settings)).Containers[0]
		if got := c.Command[len(c.Command)-1]; got != want {
			t.Errorf("%s becomes %s, want %s", word, got, want)
		}
	}
}

func TestACommandThatDoesNotCallMPIRunIsRunUnderIt(t *testing.T) {
	for name, tt := range map[string]struct {
		code string
		want []string
	}{
		"a program":        {`"./rank --fast"`, []string{"mpirun", "-n", "8", "./rank", "--fast"}},
		"mpirun":           {`"mpirun -n 2 ./rank"`, []string{"mpirun", "-n", "2", "./rank"}},
		"a path to mpirun": {`"/opt/mpi/bin/mpirun ./rank"`, []string{"/opt/mpi/bin/mpirun", "./rank"}},
		"a script":         {"\"\"\"\n#!/bin/sh -e\nmpirun ./rank\n\"\"\"", []string{"/bin/sh", "-e", "/bai/script/benchmark"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := withCommand(t, input(t, examples+"/mpi.toml"), tt.code)
			c := podOf(t, objects(t, in, settings)).Containers[0]
			want := append([]string{"/bai/bin/bai-pod", "exec", "--", "/bai/mpi/launch"}, tt.want...)
			if diff := cmp.Diff(want, c.Command); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeysAreInASecretOfTheirOwn(t *testing.T) {
	in := input(t, examples+"/mpi.toml")
	in.Keys = roles.Keys{Private: []byte("private"), Public: []byte("public"), HostKey: []byte("host"), KnownHosts: []byte("known")}
	whole, err := transpile.Secrets(in, settings, secret)
	if err != nil {
		t.Fatal(err)
	}
	planned := map[string]bool{}
	for _, o := range objects(t, in, settings).Objects {
		if s, ok := o.(*corev1.Secret); ok {
			planned[s.Name] = len(s.Data) == 0
		}
	}
	var held []string
	for _, s := range whole {
		if !planned[s.Name] {
			t.Errorf("Secret %s is not planned, or holds values there", s.Name)
		}
		held = append(held, strings.TrimPrefix(s.Name, "bai-"+runID+"-1")+" "+string(s.Data["id"]))
	}
	if diff := cmp.Diff([]string{"-worker ", "-keys private", " "}, held); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatSettingsSayOfPods(t *testing.T) {
	s := settings
	s.Placement, s.Security, s.PullPolicy, s.PullSecrets = placement.Exclusive, transpile.Restricted, "IfNotPresent", []string{"ours"}
	s.PriorityClass, s.Queue, s.Gateway = "high", "benchmarks", "http://gateway:8080"
	in := replaceInDescriptor(t, input(t, examples+"/every-key.toml"), `nfs = { server = "nfs.example.org", path = "/export/data" }`, `claim = "nfs"`)
	in = replaceInDescriptor(t, in, "mtu = 9000\n", "")
	p := objects(t, replaceInDescriptor(t, in, "[network.rdma]\nresource = \"rdma/hca_shared_devices_a\"\ncount = 2\n", ""), s)
	text := manifest(t, p.Objects)
	checkStrict(t, text)
	golden.Check(t, "testdata/restricted.yaml", text)
	job := jobOf(t, p)
	if !*job.Spec.Suspend || job.Labels["kueue.x-k8s.io/queue-name"] != "benchmarks" {
		t.Error("Kueue is not asked")
	}
	s = settings
	s.Scheduler, s.Queue = "volcano", "benchmarks"
	golden.Check(t, "testdata/volcano.yaml", manifest(t, objects(t, input(t, examples+"/mpi.toml"), s).Objects))
}

func TestOnlyTheJobThatEndsTheRunEndsItByItsDeadline(t *testing.T) {
	in := replaceInDescriptor(t, input(t, examples+"/inference.toml"), "[server.hardware]", "[limits]\ndeadline = \"10m\"\n[server.hardware]")
	var got []int64
	for _, o := range objects(t, in, settings).Objects {
		if j, ok := o.(*batchv1.Job); ok {
			got = append(got, *j.Spec.ActiveDeadlineSeconds)
		}
	}
	if diff := cmp.Diff([]int64{600 + 3600 + 120, 600}, got); diff != "" {
		t.Errorf("server, client (-want +got):\n%s", diff)
	}
}

// TestAWorkerHasASlotForEachGPUUnlessTheDescriptorSaysANumber: a script that calls
// mpirun -np 8 on two machines with four GPUs each has eight slots.
func TestAWorkerHasASlotForEachGPUUnlessTheDescriptorSaysANumber(t *testing.T) {
	for name, tt := range map[string]struct {
		machine, processes    string
		slots, processesInAll string
	}{
		"nothing is said":                       {`instance_type = "p3.8xlarge"`, "", "slots=4", "8"},
		"gpus is said":                          {`instance_type = "p3.8xlarge"`, `processes_per_instance = "gpus"`, "slots=4", "8"},
		"a number is said":                      {`instance_type = "p3.8xlarge"`, "processes_per_instance = 2", "slots=2", "4"},
		"hardware.gpus says how many there are": {"instance_type = \"p3.8xlarge\"\ngpus = 3", "", "slots=3", "6"},
		"settings know the type":                {`instance_type = "z9.huge"`, "", "slots=3", "6"},
		"the machine has no GPU":                {`instance_type = "t3.small"`, "", "slots=1", "2"},
		"nobody knows the type":                 {`instance_type = "x9.huge"`, "", "slots=1", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, examples+"/mpi.toml")
			in.Run.Descriptor = strings.Replace(in.Run.Descriptor, `instance_type = "p3.8xlarge"`, tt.machine, 1)
			in = replaceInDescriptor(t, in, `processes_per_instance = "gpus"`, tt.processes)
			s := settings
			s.Instances = "z9.huge 3"
			p := objects(t, in, s)
			if got := hostfile(p); !strings.Contains(got, " "+tt.slots+"\n") {
				t.Errorf("the hosts are\n%s, want each with %s", got, tt.slots)
			}
			command := podOf(t, p).Containers[0].Command
			if i := slices.Index(command, "-n"); i < 0 || command[i+1] != tt.processesInAll {
				t.Errorf("%v, want %s processes", command, tt.processesInAll)
			}
		})
	}
}

// hostfile returns the list of hosts that the mpirun of a plan reads.
func hostfile(p transpile.Workload) string {
	for _, o := range p.Objects {
		if c, ok := o.(*corev1.ConfigMap); ok && c.Data["hostfile"] != "" {
			return c.Data["hostfile"]
		}
	}
	return ""
}
