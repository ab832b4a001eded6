package real_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/benchmark-ai/bai/services/test/testbed"
)

// minutes is for how long a schedule is watched that fires once in each.
const minutes = 5

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

// TestAScheduleFiresOnceAMinuteForFiveMinutes has two gateways on one store. That
// which fires is killed after two minutes, and with it the broker and all the
// rest of the platform; the other one fires from then on. The platform comes back.
func TestAScheduleFiresOnceAMinuteForFiveMinutes(t *testing.T) {
	bed := testbed.Kubernetes(t)
	if !bed.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope, dir := bed.Namespace(t), t.TempDir()
	data := filepath.Join(dir, "data")
	args := []string{"--kubeconfig", account(t, bed, scope, "platform", "executor", "watcher"), "--kube-namespace", scope, "--pod-image", podImage}
	b := build(t, bed)
	p := startIn(t, b, data, args...)
	second := joinGateway(t, b, data)
	file := filepath.Join(dir, "minutely.toml")
	if err := os.WriteFile(file, []byte(everyMinute), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := p.baictl(t, "submit", file, "--name", "minutely"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	second.ended(t, 2)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // says that it was killed
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
	cleared(t, bed, scope)
}

// joinGateway starts a gateway in a process of its own, beside that of a platform.
func joinGateway(t *testing.T, b built, data string) gatewayReplica {
	t.Helper()
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(data, "services.toml"), &settings); err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	settings["listen"] = listen
	delete(settings, "kubernetes") // it only makes runs
	delete(settings, "watcher")
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(settings); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "gateway.toml")
	if err := os.WriteFile(config, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &output{}
	cmd := exec.Command(filepath.Join(b.bin, "gateway"), "-config", config)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway ended: %v", err)
		}
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", log)
		}
	})
	return gatewayReplica{platform{b, listen, cmd}}
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
	for late := time.Now().Add(time.Duration(n+1) * time.Minute); ; time.Sleep(500 * time.Millisecond) {
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
