package testbed_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
)

// requireAlone skips a test that inspects the whole machine if other users work on it,
// and undoes earlier leftovers.
func requireAlone(t *testing.T) {
	t.Helper()
	if os.Getenv(testbed.EnvReal) == "" || os.Getenv(testbed.EnvCluster) != "" || os.Getenv("KUBECONFIG") != "" {
		t.Skip("looks at what a cluster leaves on this machine: `make test-real` runs it, before another cluster is up")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := errors.Join(kit.Packages(ctx), kubecluster.Sweep(ctx)); err != nil { // installed packages remain, and are not the cluster's
		t.Fatal(err)
	}
}

// ours matches lines about a cluster's network. Other programs may change the network of
// this machine meanwhile.
var ours = regexp.MustCompile(`bai-bed|KUBE|CNI|10\.(201|245|97)\.`)

// machine is the state of this machine that a cluster could change. A namespace without a
// process and without a mount does not count.
func machine(t *testing.T) map[string][]string {
	t.Helper()
	m := map[string][]string{}
	for name, args := range map[string][]string{"links": {"ip", "-br", "link"}, "routes": {"ip", "route"}, "packet filter": {"iptables-save"}} {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		m[name] = matching(string(out), ours)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	m["mounts"] = matching(string(mounts), regexp.MustCompile(regexp.QuoteMeta(kubecluster.Root())+"|containerd|kubelet"))
	m["control groups"], _ = filepath.Glob("/sys/fs/cgroup/*/bai-bed*")
	m["folders"], _ = filepath.Glob(kubecluster.Root() + "/left-*") // of the clusters below
	for _, d := range []string{"/var/lib/kubelet", "/run/netns", "/var/lib/cni", "/opt/cni", "/etc/cni/net.d", "/var/log/pods"} {
		if _, err := os.Stat(d); err == nil {
			m["folders"] = append(m["folders"], d)
		}
	}
	for _, s := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		b, _ := os.ReadFile("/proc/sys/" + s)
		m["kernel settings"] = append(m["kernel settings"], s+"="+strings.TrimSpace(string(b)))
	}
	m["processes"] = processes(t)
	for _, v := range m {
		sort.Strings(v)
	}
	return m
}

// matching are the lines of text that have something in them.
func matching(text string, what *regexp.Regexp) []string {
	var some []string
	for line := range strings.Lines(text) {
		if what.MatchString(line) {
			some = append(some, line)
		}
	}
	return some
}

// processes are those that belong to a cluster.
func processes(t *testing.T) []string {
	t.Helper()
	var all []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		text := strings.ReplaceAll(string(b), "\x00", " ")
		if err == nil && (strings.Contains(text, kubecluster.Root()) || strings.Contains(text, "containerd") || strings.Contains(text, "kube-proxy")) {
			all = append(all, text)
		}
	}
	return all
}

func TestNothingIsLeftOfAClusterThatEnded(t *testing.T) {
	requireAlone(t)
	before := machine(t)
	info, stop, err := testbed.Boot(t.Context(), kubecluster.Settings{Name: "left-left", Nodes: 2}, true)
	if err != nil {
		t.Fatal(err)
	}
	c := &testbed.Cluster{Info: info}
	c.Run(t, "create", "job", "j", "--image=docker.io/library/debian:12-slim", "--", "sleep", "60")
	c.Run(t, "wait", "--for=jsonpath={.status.ready}=1", "--timeout=60s", "job/j")
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	t.Logf("the cluster was gone after %s", time.Since(began).Round(time.Millisecond))
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("what is left (-before +after):\n%s", diff)
	}
}

func TestWhatAKilledKeeperLeavesIsClearedByTheNext(t *testing.T) {
	requireAlone(t)
	before := machine(t)
	info, stop, err := testbed.Boot(t.Context(), kubecluster.Settings{Name: "left-killed", Nodes: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(info.Keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = stop() // says that it was killed
	if left := machine(t); cmp.Equal(before["control groups"], left["control groups"]) {
		t.Error("a keeper that was killed left nothing: is this test of use?")
	}
	_, stop, err = testbed.Boot(t.Context(), kubecluster.Settings{Name: "left-next", Nodes: 0, NoControllers: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("what is left (-before +after):\n%s", diff)
	}
}

func TestTwoClustersWithoutNodesAreUpAtOnce(t *testing.T) {
	requireAlone(t)
	for _, name := range []string{"one", "two"} {
		began := time.Now()
		info, stop, err := testbed.Boot(t.Context(), kubecluster.Settings{Name: name}, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		t.Logf("%s was up after %s", name, time.Since(began).Round(time.Millisecond))
		c := &testbed.Cluster{Info: info}
		c.Run(t, "get", "serviceaccount", "default")
	}
}

func TestAClusterOneOfWhosePartsEndsIsGivenUpAtOnce(t *testing.T) {
	requireAlone(t)
	k, err := kit.Build(t.Context(), kit.Want{})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		t.Run(part, func(t *testing.T) {
			bin := withBroken(t, k.Bin, part)
			_, _, err := testbed.Boot(t.Context(), kubecluster.Settings{Name: "left-broken", Bin: bin}, part != "etcd")
			if want := part + ` has ended; its log ends with "unknown flag: --planted"`; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("boot: %v, want %s", err, want)
			}
		})
	}
}

// withBroken returns a folder with the parts of Kubernetes in bin, but for one, which ends as it begins.
func withBroken(t *testing.T, bin, part string) string {
	t.Helper()
	dir := t.TempDir()
	all, err := os.ReadDir(bin)
	for _, other := range all {
		if other.Name() != part {
			err = errors.Join(err, os.Symlink(filepath.Join(bin, other.Name()), filepath.Join(dir, other.Name())))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WriteProgram(t, filepath.Join(dir, part), "#!/bin/sh\necho unknown flag: --planted >&2; exit 1\n")
	return dir
}
