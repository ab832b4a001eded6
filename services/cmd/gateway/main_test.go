package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/cmd/internal/deployedtest"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

const descriptor = `spec_version = "0.1.0"
[info]
description = "hello"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "alpine"
[ml]
benchmark_code = "echo hello"
`

// TestProcess runs the whole process against a broker, as in a container: a run is
// submitted, is projected from the topics, ends, and is still there after a restart.
func TestProcess(t *testing.T) {
	broker := kafkatest.Start(t, event.Topics()...)
	addr := port.Addr(t)
	file := writeFile(t, fmt.Sprintf("listen = %q\nstore = %q\n[log]\nlevel = \"error\"\n[kafka]\nbrokers = [%q]\nkey_file = %q\nretry = \"10ms\"\n", addr, filepath.Join(t.TempDir(), "bai.db"), broker.Addrs[0], writeFile(t, "0123456789abcdef")))

	client, stop := start(t, file, addr)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	resp, err := client.SubmitRun(ctx, &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor), Name: "nightly"}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if got := broker.Read(t, event.TopicSubmitted).Value; !strings.Contains(got, resp.GetRunId()) {
		t.Errorf("published: %s", got)
	}
	if _, err := client.CancelRun(ctx, &baiv1.CancelRunRequest{Run: "nightly"}); err != nil {
		t.Fatal(err)
	}
	watch, err := client.WatchRun(ctx, &baiv1.WatchRunRequest{Run: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	for phase := baiv1.Phase_PHASE_UNSPECIFIED; phase != baiv1.Phase_PHASE_CANCELING; {
		change, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		phase = change.GetChange().GetPhase()
	}
	stop()

	client, stop = start(t, file, addr)
	defer stop()
	got, err := client.GetRun(ctx, &baiv1.GetRunRequest{Run: resp.GetRunId()}, grpc.WaitForReady(true))
	if err != nil || got.GetRun().GetPhase() != baiv1.Phase_PHASE_CANCELING {
		t.Errorf("after a restart: %v, %v", got, err)
	}
}

// start runs the process, and returns a client and a function that stops both.
func start(t *testing.T, file, addr string) (baiv1.RunServiceClient, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- program.Run(ctx, "gateway", []string{"-config", file}, &settings{}) }()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return baiv1.NewRunServiceClient(conn), func() {
		t.Helper()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	}
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"all faults at once": {"[gateway.intake]\npublish_timeout = \"-1s\"\n[gateway.api]\ncall_timeout = \"-1s\"\n[log]\nlevel = \"loud\"\n", []string{
			"store: ", "log.level", "kafka.brokers", "kafka.key_file", "intake.publish_timeout", "api.call_timeout",
		}},
		"a misspelt setting": {"stoer = \"x\"\n", []string{"unknown settings: stoer"}},
		"no file":            {"-", []string{"no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := "/nowhere.toml"
			if tt.file != "-" {
				file = writeFile(t, tt.file)
			}
			err := program.Run(t.Context(), "gateway", []string{"-config", file}, &settings{})
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Run: %v, want an error with %q", err, want)
				}
			}
		})
	}
}

func TestAnAddressInUseIsSaid(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing depends on this close
	file := writeFile(t, fmt.Sprintf("listen = %q\nstore = %q\n[kafka]\nbrokers = [\"127.0.0.1:1\"]\nkey_file = %q\n", l.Addr(), filepath.Join(t.TempDir(), "bai.db"), writeFile(t, "0123456789abcdef")))
	if err := program.Run(t.Context(), "gateway", []string{"-config", file}, &settings{}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Run: %v", err)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.toml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheSettingsThatAreDeployedAreOnesThatThisProgramHas(t *testing.T) {
	deployedtest.WantLoaded(t, func() config.Validator { return &settings{} })
}
