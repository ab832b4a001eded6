package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// gatewayProcess is a gateway in a process of its own, beside others on one store.
type gatewayProcess struct {
	t    *testing.T
	args []string
	addr string
	cmd  *exec.Cmd // nil while it does not run
	log  *lockedBuffer
}

// startWithoutGateway starts a platform whose gateways are other processes.
func startWithoutGateway(t *testing.T) *platform {
	t.Helper()
	p := &platform{t: t, dir: filepath.Join(t.TempDir(), "data"), servers: servers.flags(t, nil), log: &lockedBuffer{}}
	t.Cleanup(func() {
		p.stop()
		p.wantNothingLeft()
		if t.Failed() {
			t.Logf("the platform's log:\n%s", tail(p.log.String(), 8000))
		}
	})
	out := &lockedBuffer{}
	p.cmd = exec.Command(filepath.Join(bin, "bai"), append([]string{"standalone", "--data", p.dir, "--without", "gateway"}, p.servers...)...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), "HOME="+filepath.Dir(p.dir)), out, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if !strings.Contains(out.String(), "has no API") {
			return errors.New("it is not ready")
		}
		return nil
	})
	return p
}

// startGateway starts a gateway on the store of a platform.
func startGateway(p *platform, name string) *gatewayProcess {
	p.t.Helper()
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(p.dir, "services.toml"), &settings); err != nil {
		p.t.Fatal(err)
	}
	d := &gatewayProcess{t: p.t, addr: port.Addr(p.t), log: &lockedBuffer{}}
	settings["listen"] = d.addr
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(settings); err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(p.dir, name+".toml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		p.t.Fatal(err)
	}
	d.args = []string{"-config", file}
	p.t.Cleanup(func() {
		d.stop()
		if p.t.Failed() {
			p.t.Logf("the log of gateway %s:\n%s", name, tail(d.log.String(), 4000))
		}
	})
	d.begin()
	return d
}

// begin starts the process, again if there was one before, and waits until it can be reached.
func (d *gatewayProcess) begin() {
	d.t.Helper()
	d.cmd = exec.Command(filepath.Join(bin, "gateway"), d.args...)
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, func() error {
		c, err := net.Dial("tcp", d.addr)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// kill ends the process as a crash would.
func (d *gatewayProcess) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	_ = d.cmd.Wait() // says that it was killed
	d.cmd = nil
}

// stop ends the process as an operator would.
func (d *gatewayProcess) stop() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("a gateway ended with %v", err)
	}
	d.cmd = nil
}

// awaitFiring waits until the gateway is the one that fires, for the n-th time.
func (d *gatewayProcess) awaitFiring(n int) {
	d.t.Helper()
	eventually(d.t, func() error {
		if strings.Count(d.log.String(), "fires schedules") < n {
			return errors.New("it does not fire schedules")
		}
		return nil
	})
}

// baictl runs baictl against the gateway, and returns its output.
func (d *gatewayProcess) baictl(args ...string) string {
	d.t.Helper()
	out, errs, code := baictl(d.t, d.addr, args...)
	if code != 0 {
		d.t.Fatalf("baictl %q exits with %d: %s", args, code, errs)
	}
	return out
}

// firedRuns are the runs of a schedule, the first first.
func (d *gatewayProcess) firedRuns(name string) []firedRun {
	d.t.Helper()
	var got struct{ Runs []firedRun }
	if err := json.Unmarshal([]byte(d.baictl("list", "--schedule", name, "--sort", "oldest", "--limit", "0", "-o", "json")), &got); err != nil {
		d.t.Fatal(err)
	}
	return got.Runs
}

type firedRun struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Lineage struct {
		FiringTime time.Time `json:"firingTime"`
	} `json:"lineage"`
}

// everyMinute is a descriptor that is fired every minute.
func everyMinute() string {
	return strings.Replace(script("echo fired"), "[info]", "[info]\nscheduling = \"* * * * *\"", 1)
}

// Two gateways fire for one schedule in turn: the first is killed after its
// firing, and the second makes the next.
func TestAScheduleFiresOnceAMinuteWhicheverGatewayDies(t *testing.T) {
	t.Parallel()
	p := startWithoutGateway(t)
	a := startGateway(p, "a")
	a.awaitFiring(1)
	b := startGateway(p, "b")
	file := filepath.Join(t.TempDir(), "minutely.toml")
	if err := os.WriteFile(file, []byte(everyMinute()), 0o600); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(b.baictl("submit", file, "--name", "minutely"))
	if again := strings.TrimSpace(b.baictl("submit", file, "--name", "minutely")); again != id {
		t.Errorf("submitted again it is schedule %s, want %s", again, id)
	}
	b.awaitEnded("minutely", 1)
	a.kill()
	b.awaitFiring(1)
	for n := 2; n <= firings(); n++ {
		b.awaitEnded("minutely", n)
	}
	a.begin()
	runs := b.firedRuns("minutely")
	first := runs[0].Lineage.FiringTime
	for i, r := range runs {
		if want := first.Add(time.Duration(i) * time.Minute); !r.Lineage.FiringTime.Equal(want) || r.Outcome != "succeeded" {
			t.Errorf("run %d was fired for %s and has %q, want %s", i, r.Lineage.FiringTime, r.Outcome, want)
		}
	}
	b.baictl("schedule", "pause", "minutely")
	wantBackfill(t, b, first.Add(-30*time.Minute), len(runs))
	wantNothingMissed(t, b, "minutely")
}

// firings are how many minutes are waited for: two, and five where all suites run.
func firings() int {
	if isLongForm() {
		return 5
	}
	return 2
}

// awaitEnded waits until a schedule has n runs, and all are over.
func (d *gatewayProcess) awaitEnded(name string, n int) {
	d.t.Helper()
	eventually(d.t, func() error {
		runs := d.firedRuns(name)
		for _, r := range runs {
			if r.Outcome == "" {
				return fmt.Errorf("run %s goes on", r.ID)
			}
		}
		if len(runs) < n {
			return fmt.Errorf("%d runs, want %d", len(runs), n)
		}
		return nil
	})
}

// wantBackfill makes up for ten minutes, twice, in which nothing was fired.
func wantBackfill(t *testing.T, d *gatewayProcess, from time.Time, before int) {
	t.Helper()
	var want []string
	for i := range 10 {
		want = append(want, from.Add(time.Duration(i)*time.Minute).UTC().Format(time.RFC3339))
	}
	args := []string{"schedule", "backfill", "minutely", "--from", from.Format(time.RFC3339), "--to", from.Add(10 * time.Minute).Format(time.RFC3339), "-o", "name"}
	if diff := cmp.Diff(want, strings.Fields(d.baictl(args...))); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	d.awaitEnded("minutely", before+10)
	if again := d.baictl(args...); again != "" {
		t.Errorf("missing after a backfill: %q", again)
	}
	seen := map[string]bool{}
	for _, r := range d.firedRuns("minutely") {
		at := r.Lineage.FiringTime.UTC().Format(time.RFC3339)
		if seen[at] {
			t.Errorf("two runs were fired for %s", at)
		}
		seen[at] = true
	}
	if len(seen) != before+10 {
		t.Errorf("%d runs, want %d", len(seen), before+10)
	}
}

func wantNothingMissed(t *testing.T, d *gatewayProcess, name string) {
	t.Helper()
	var got struct {
		Firings []struct {
			Missed  bool   `json:"missed"`
			Message string `json:"message"`
		} `json:"firings"`
	}
	if err := json.Unmarshal([]byte(d.baictl("schedule", "get", name, "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	for _, f := range got.Firings {
		if f.Missed {
			t.Errorf("missed: %s", f.Message)
		}
	}
}

// The schedule that the original system's sample and its documents have.
func TestTheOriginalsScheduleIsTakenAndItsFiringsAreRuns(t *testing.T) {
	t.Parallel()
	p := start(t)
	file := filepath.Join(t.TempDir(), "descriptor.toml")
	text := strings.Replace(script("echo fired"), "[info]", "[info]\nscheduling = \"0 0 * * *\"", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := p.baictl("run", "benchmark", "--descriptor="+file)
	if code != 0 || !strings.Contains(errs, "fires next at") || !strings.Contains(errs, "T00:00:00Z") {
		t.Fatalf("exits with %d: %s%s", code, out, errs)
	}
	id := strings.TrimSpace(out)
	triggered, errs, code := p.baictl("schedule", "trigger", id)
	if code != 0 {
		t.Fatalf("trigger exits with %d: %s", code, errs)
	}
	r := p.awaitEnd(strings.TrimSpace(triggered))
	if r.GetLineage().GetScheduleId() != id || r.GetLineage().GetFiringTime() == nil || r.GetOutcome().String() != "OUTCOME_SUCCEEDED" {
		t.Errorf("the run of a firing is %v", r)
	}
	again, errs, code := p.baictl("rerun", r.GetId(), "--wait")
	if code != 0 || p.get(strings.TrimSpace(again)).GetLineage().GetRerunOf() != r.GetId() {
		t.Errorf("a firing again exits with %d: %s%s", code, again, errs)
	}
}
