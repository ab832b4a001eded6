package real_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// replicas is how many processes there are of each service that has several.
const replicas = 2

// fleet is a platform whose executors and watchers are processes of their own,
// each service with the rights that deploy gives it.
type fleet struct {
	world

	api     baiv1.RunServiceClient
	data    string
	args    []string // of the process that runs the rest
	members []*replica
}

// newFleet starts a platform with settings and its replicas.
func newFleet(t *testing.T, settings string, args ...string) *fleet {
	t.Helper()
	return newFleetThat(t, func(*fleet, string) {}, settings, args...)
}

// newFleetThat is newFleet, where the account of a service needs more than every
// platform's.
func newFleetThat(t *testing.T, needs func(f *fleet, service string), settings string, args ...string) *fleet {
	t.Helper()
	bed := testbed.Kubernetes(t)
	if !bed.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope, dir := bed.Namespace(t), t.TempDir()
	file := filepath.Join(dir, "bai.toml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fleet{data: filepath.Join(dir, "data"), args: append(args,
		"--without", "executor,watcher", "--config", file,
		"--kubeconfig", account(t, bed, scope, "platform"), "--kube-namespace", scope, "--pod-image", podImage)}
	f.bed, f.scope, f.built = bed, scope, build(t, bed)
	f.begin(t)
	for _, service := range []string{"executor", "watcher"} {
		config := account(t, bed, scope, service, service)
		needs(f, service)
		for n := range replicas {
			f.members = append(f.members, f.join(t, service, n+1, config))
		}
	}
	for _, r := range f.members {
		r.awaitReady(t)
	}
	return f
}

// begin starts what the replicas join, once more if it was there before.
func (f *fleet) begin(t *testing.T, args ...string) {
	t.Helper()
	f.platform = startIn(t, f.built, f.data, append(args, f.args...)...)
	conn, err := grpc.NewClient(f.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f.api = baiv1.NewRunServiceClient(conn)
}

// replica is one process of a service.
type replica struct {
	service, name        string
	path, config, health string
	log                  *output
	cmd                  *exec.Cmd // nil while it does not run
}

// join starts a replica that ends with the test.
func (f *fleet) join(t *testing.T, service string, n int, kubeconfig string) *replica {
	t.Helper()
	r := &replica{service: service, name: fmt.Sprintf("%s %d", service, n), path: filepath.Join(f.bin, service), health: freeAddress(t), log: &output{}}
	r.config = filepath.Join(filepath.Dir(f.data), fmt.Sprintf("%s-%d.toml", service, n))
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(f.data, "services.toml"), &settings); err != nil {
		t.Fatal(err)
	}
	settings["health"] = r.health
	kubernetes, ok := settings["kubernetes"].(map[string]any)
	if !ok {
		t.Fatalf("services join with %v, which has no table kubernetes", settings)
	}
	kubernetes["kubeconfig"] = kubeconfig
	file, err := os.Create(r.config)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was written, or the replica says that it is not whole
	if err := toml.NewEncoder(file).Encode(settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.stop(t)
		if t.Failed() {
			t.Logf("the log of %s:\n%s", r.name, r.log)
		}
	})
	r.begin(t)
	return r
}

// begin starts the process, again if there was one before.
func (r *replica) begin(t *testing.T) {
	t.Helper()
	cmd := exec.Command(r.path, "-config", r.config)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = r.log, r.log, kit.DieWithUs()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.cmd = cmd
}

// kill ends the process as a crash would.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Errorf("kill %s: %v", r.name, err)
	}
	_ = r.cmd.Wait() // says that it was killed
	r.cmd = nil
}

// stop ends the process as an operator would.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%s ended: %v", r.name, err)
	}
	r.cmd = nil
}

// ready reports whether the replica says that it is of use.
func (r *replica) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.health+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (r *replica) awaitReady(t *testing.T) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !r.ready(t.Context()); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s is not ready:\n%s", r.name, r.log)
		}
	}
}

// freeAddress returns an address that nobody listens on, with a port that no
// outgoing connection is given.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port found")
	return ""
}

// stopRest ends the process that the replicas have joined, as an operator would.
func (f *fleet) stopRest(t *testing.T) {
	t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Wait(); err != nil {
		t.Errorf("the platform ended: %v", err)
	}
}
