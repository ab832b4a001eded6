package real_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// everyMinute is a descriptor that is fired every minute.
const everyMinute = `spec_version = "1.0"
[info]
description = "once a minute"
scheduling = "* * * * *"
[hardware]
cpus = "100m"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "date"
`

// TestAScheduleFiresOnceAMinute has two gateways on one store, for five minutes. The
// firing one is killed after two, and with it the broker and the rest of the platform;
// the other one fires from then on. The platform restarts.
func TestAScheduleFiresOnceAMinute(t *testing.T) {
	t.Parallel()
	const kill, minutes = 2, 5
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope, dir := testCluster.Namespace(t), t.TempDir()
	data := filepath.Join(dir, "data")
	args := []string{"--kubeconfig", account(t, testCluster, scope, "platform", "executor", "watcher"), "--kube-namespace", scope, "--pod-image", podImage}
	b := build(t, testCluster)
	p := startIn(t, b, data, args...)
	second := joinGateway(t, b, data)
	file := filepath.Join(dir, "minutely.toml")
	if err := os.WriteFile(file, []byte(everyMinute), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := p.baictl(t, "submit", file, "--name", "minutely"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	second.ended(t, kill)
	p.process.Kill(t)
	startIn(t, b, data, args...)
	second.ended(t, minutes)
	if out, code := second.baictl(t, "schedule", "pause", "minutely"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	runs := second.fired(t)
	for i, r := range runs {
		want := runs[0].Lineage.FiringTime.Add(time.Duration(i) * time.Minute)
		if !r.Lineage.FiringTime.Equal(want) || r.Outcome != "succeeded" {
			t.Errorf("run %d was fired for %s and has %q, want %s", i, r.Lineage.FiringTime, r.Outcome, want)
		}
	}
	out, _ := second.baictl(t, "schedule", "get", "minutely")
	t.Logf("%d runs\n%s", len(runs), out)
	if strings.Contains(out, " Missed ") {
		t.Errorf("firings were missed:\n%s", out)
	}
	awaitCleared(t, testCluster, scope)
}

// joinGateway starts a gateway in a process of its own, beside that of a platform.
func joinGateway(t *testing.T, b built, data string) gatewayReplica {
	t.Helper()
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(data, "services.toml"), &settings); err != nil {
		t.Fatal(err)
	}
	listen := process.FreeAddr(t)
	settings["listen"] = listen
	delete(settings, "kubernetes") // it only makes runs
	delete(settings, "watcher")
	config := filepath.Join(t.TempDir(), "gateway.toml")
	writeTOML(t, config, settings)
	gateway := process.New("the gateway", "", filepath.Join(b.bin, "gateway"), "-config", config)
	gateway.Begin(t)
	gateway.EndWith(t)
	g := gatewayReplica{platform{b, listen, gateway}}
	for late := time.Now().Add(waitTimeout); ; time.Sleep(100 * time.Millisecond) { // a client that never had a connection does not wait for one
		out, code := g.baictl(t, "schedule", "list")
		if code == 0 {
			return g
		}
		if time.Now().After(late) {
			t.Fatalf("the gateway does not answer: exit code %d\n%s", code, out)
		}
	}
}

// gatewayReplica is a gateway that goes on while the rest of its platform does not.
type gatewayReplica struct{ platform }

// firedRun is a run as baictl lists it.
type firedRun struct {
	Outcome string `json:"outcome"`
	Lineage struct {
		FiringTime time.Time `json:"firingTime"`
	} `json:"lineage"`
}

// fired are the runs of the schedule, the first first.
func (g gatewayReplica) fired(t *testing.T) []firedRun {
	t.Helper()
	out, code := g.baictl(t, "list", "--schedule", "minutely", "--sort", "oldest", "-o", "json")
	var got struct{ Runs []firedRun }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	return got.Runs
}

// ended waits until the schedule has n runs that are over.
func (g gatewayReplica) ended(t *testing.T, n int) {
	t.Helper()
	for late := time.Now().Add(time.Duration(n)*time.Minute + waitTimeout); ; time.Sleep(500 * time.Millisecond) {
		over := 0
		for _, r := range g.fired(t) {
			if r.Outcome != "" {
				over++
			}
		}
		if over >= n {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d runs are over, want %d", over, n)
		}
	}
}
