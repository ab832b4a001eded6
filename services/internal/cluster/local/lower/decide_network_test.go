package lower_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// jobOf returns a Job of a role; more than one pod have numbers.
func jobOf(name string, pods int32) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	if pods > 1 {
		mode := batchv1.IndexedCompletion
		j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = &mode, &pods, &pods
	}
	j.Spec.Template.Spec.Subdomain = "mpi"
	return j
}

func service(name, ip, role string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.ServiceSpec{ClusterIP: ip, Selector: map[string]string{"run": "r"}}}
	if role != "" {
		s.Spec.Selector["role"] = role
	}
	return s
}

func peer(j *batchv1.Job, index, number int, role string) lower.Peer {
	return lower.Peer{
		Job: j, Number: number, Labels: map[string]string{"run": "r", "role": role}, Hostname: lower.Hostname(j, index, j.Name+"-abcde"),
	}
}

func TestThePodsOfARunAreCalledWhatKubernetesCallsThem(t *testing.T) {
	t.Parallel()
	workers, launcher := jobOf("w", 2), jobOf("l", 1)
	launcher.Spec.Template.Spec.Hostname = "launcher"
	const first = "127.0.0.1 localhost|::1 localhost ip6-localhost ip6-loopback|"
	for name, tt := range map[string]struct {
		peers    []lower.Peer
		services []*corev1.Service
		want     string
	}{
		"nobody": {want: first},
		"the pods of a service without an address": {
			peers:    []lower.Peer{peer(launcher, 0, 3, "l"), peer(workers, 1, 2, "w"), peer(workers, 0, 1, "w")},
			services: []*corev1.Service{service("mpi", corev1.ClusterIPNone, "w")},
			want: first + "10.0.0.1 w-0.mpi.ns.svc.cluster.local w-0.mpi.ns.svc w-0.mpi.ns w-0.mpi w-0|" +
				"10.0.0.2 w-1.mpi.ns.svc.cluster.local w-1.mpi.ns.svc w-1.mpi.ns w-1.mpi w-1|10.0.0.3 launcher|" +
				"10.0.0.1 mpi.ns.svc.cluster.local mpi.ns.svc mpi.ns mpi|10.0.0.2 mpi.ns.svc.cluster.local mpi.ns.svc mpi.ns mpi|",
		},
		"a server and who asks it": {
			peers:    []lower.Peer{peer(jobOf("s", 1), 0, 1, "server"), peer(jobOf("c", 1), 0, 300, "client")},
			services: []*corev1.Service{service("server", "", "server"), service("nobody", "", "x"), {ObjectMeta: metav1.ObjectMeta{Name: "all"}}},
			want:     first + "10.0.0.1 s-abcde|10.0.1.44 c-abcde|10.0.0.1 server.ns.svc.cluster.local server.ns.svc server.ns server|",
		},
		"the first of several behind an address": {
			peers:    []lower.Peer{peer(jobOf("a", 1), 0, 1, "s"), peer(jobOf("b", 1), 0, 2, "s")},
			services: []*corev1.Service{service("s", "", "s")},
			want:     first + "10.0.0.1 a-abcde|10.0.0.2 b-abcde|10.0.0.1 s.ns.svc.cluster.local s.ns.svc s.ns s|",
		},
	} {
		got := strings.Join(lower.Hosts(tt.peers, tt.services), "|") + "|"
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	long := jobOf(strings.Repeat("x", 62)+"-y", 1)
	if got := lower.Hostname(long, 0, long.Name); got != strings.Repeat("x", 62) {
		t.Errorf("a long name: %q", got)
	}
}

func TestOnlyThePlatformsOwnProgramsAreInTheMachinesNetwork(t *testing.T) {
	t.Parallel()
	in := input()
	in.Env, in.Network, in.Hosts = append(in.Env, "TMPDIR=/var/tmp"), lower.Network(in.Job, 0, in.PodName, 7), "names\n"
	out, missing := lower.Pod(in)
	if missing != nil {
		t.Fatal(missing)
	}
	want := &shimapi.Network{Number: 7, Address: "10.0.0.7", Prefix: 16, Hostname: "run-x", Private: []string{"/run/sshd"}}
	if diff := cmp.Diff(want, out.Pod.Network); diff != "" {
		t.Errorf("network (-want +got):\n%s", diff)
	}
	for _, c := range out.Pod.Containers {
		outside := c.Name == "bai-install" || c.Name == "bai-collect"
		dir, set := asMap(c.Env)["TMPDIR"]
		if c.HostNetwork != outside || set == outside || set && dir != "/bai/tmp" {
			t.Errorf("%s is outside: %t, with temporary files in %q", c.Name, c.HostNetwork, dir)
		}
		if collects := c.Name == "bai-collect"; c.Sockets != collects || (asMap(c.Env)["BAI_SOCKETS"] == "3") != collects {
			t.Errorf("%s is given sockets of the pod's network: %t, and told %v", c.Name, c.Sockets, c.Env)
		}
		if slices.ContainsFunc(c.Mounts, func(m shimapi.Mount) bool { return m.Path == "/etc/hosts" }) == outside {
			t.Errorf("%s has the machine's names: %t, want %t", c.Name, !outside, outside)
		}
	}
	if at := lower.HostsFile(in.Dir); !slices.ContainsFunc(out.Files, func(f lower.File) bool { return f.Path == at && string(f.Data) == "names\n" }) {
		t.Errorf("the names are not in %s", at)
	}
}
