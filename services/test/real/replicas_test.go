package real_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/BurntSushi/toml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// fleet is a platform whose executors and watchers are processes of their own,
// each service with the rights that deploy gives it.
type fleet struct {
	fixture

	api     baiv1.RunServiceClient
	sets    baiv1.SetServiceClient
	data    string
	args    []string // of the process that runs the rest
	members []*replica
}

// fleetOptions configure a fleet.
type fleetOptions struct {
	cluster  *testbed.Cluster               // nil for one that runs pods
	settings string                         // of the platform
	args     []string                       // further ones of the process that runs the rest
	replicas int                            // of each service that is a process of its own; zero means two
	grant    func(f *fleet, service string) // gives the account of a service more than every platform's needs; nil for nothing
}

// newFleet starts a platform and its replicas.
func newFleet(t *testing.T, o fleetOptions) *fleet {
	t.Helper()
	if o.cluster == nil {
		o.cluster = testbed.Kubernetes(t)
	}
	if !o.cluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope, dir := o.cluster.Namespace(t), t.TempDir()
	file := filepath.Join(dir, "bai.toml")
	if err := os.WriteFile(file, []byte(o.settings), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fleet{data: filepath.Join(dir, "data"), args: append(o.args,
		"--without", "executor,watcher", "--config", file,
		"--kubeconfig", account(t, o.cluster, scope, "platform"), "--kube-namespace", scope, "--pod-image", podImage)}
	f.cluster, f.scope, f.built = o.cluster, scope, build(t, o.cluster)
	f.begin(t)
	for _, service := range []string{"executor", "watcher"} {
		config := account(t, o.cluster, scope, service, service)
		if o.grant != nil {
			o.grant(f, service)
		}
		for n := range cmp.Or(o.replicas, 2) {
			f.members = append(f.members, f.join(t, service, n+1, config))
		}
	}
	for _, r := range f.members {
		r.AwaitReady(t)
	}
	return f
}

// begin starts the processes that the replicas join, again if they were started before.
func (f *fleet) begin(t *testing.T, args ...string) {
	t.Helper()
	f.platform = startIn(t, f.built, f.data, append(args, f.args...)...)
	conn, err := grpc.NewClient(f.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f.api, f.sets = baiv1.NewRunServiceClient(conn), baiv1.NewSetServiceClient(conn)
}

// replica is one process of a service.
type replica struct {
	*process.Process

	service string
}

// join starts a replica that ends with the test.
func (f *fleet) join(t *testing.T, service string, n int, kubeconfig string) *replica {
	t.Helper()
	var settings map[string]any
	if _, err := toml.DecodeFile(filepath.Join(f.data, "services.toml"), &settings); err != nil {
		t.Fatal(err)
	}
	health, config := process.FreeAddr(t), filepath.Join(filepath.Dir(f.data), fmt.Sprintf("%s-%d.toml", service, n))
	settings["health"] = health
	settingsTable(t, settings, "kubernetes")["kubeconfig"] = kubeconfig
	writeTOML(t, config, settings)
	p := process.New(fmt.Sprintf("%s %d", service, n), health, filepath.Join(f.bin, service), "-config", config)
	p.Begin(t)
	p.EndWith(t)
	return &replica{p, service}
}
