package deploy_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

const composeFile = "../../../deploy/compose.yaml"

// loadCompose reads the file as Docker Compose does.
func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	path, err := filepath.Abs(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheComposedServersAreThoseThatSuitesAreRunOn(t *testing.T) {
	p := loadCompose(t)
	for name, want := range map[string]string{
		"kafka": "apache/kafka:" + kafka.Version, "elasticsearch": "docker.elastic.co/elasticsearch/elasticsearch:" + elasticsearch.Version,
		"kibana": "docker.elastic.co/kibana/kibana:" + elasticsearch.Version, "platform": "debian:12-slim",
	} {
		if s, err := p.GetService(name); err != nil || s.Image != want {
			t.Errorf("%s is %q, want %s: %v", name, s.Image, want, err)
		}
	}
}

func TestWhatIsComposedIsReachedFromThisMachineOnly(t *testing.T) {
	published := 0
	for name, s := range loadCompose(t).Services {
		for _, port := range s.Ports {
			published++
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s at %q", name, port.Published, port.HostIP)
			}
		}
		if s.Privileged || len(s.CapAdd) > 0 || s.NetworkMode == "host" {
			t.Errorf("%s may do more than it needs", name)
		}
		for dependence, how := range s.DependsOn {
			if how.Condition != types.ServiceConditionHealthy {
				t.Errorf("%s does not wait until %s answers", name, dependence)
			}
		}
	}
	if published != 2 {
		t.Errorf("%d ports are published, want the API and Kibana", published)
	}
}

// TestThePlatformTakesItsComposedSettings starts it as composed, where none of the
// servers is: it waits for them and says so, and nothing of its settings.
func TestThePlatformTakesItsComposedSettings(t *testing.T) {
	p := loadCompose(t)
	s, err := p.GetService("platform")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := process.Build(dir); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("kafka:9092", "127.0.0.1:1", "elasticsearch:9200", "127.0.0.1:1", "127.0.0.1:8081", "").Replace(p.Configs[s.Configs[0].Source].Content)
	if err := os.WriteFile(filepath.Join(dir, "bai.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{}, s.Command[1:]...)
	for i, arg := range args {
		arg = strings.Replace(arg, "/data", filepath.Join(dir, "data"), 1)
		arg = strings.Replace(arg, s.Configs[0].Target, filepath.Join(dir, "bai.toml"), 1)
		args[i] = strings.Replace(arg, "0.0.0.0:7070", "127.0.0.1:0", 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, filepath.Base(s.Command[0])), args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	waits := false
	for lines := bufio.NewScanner(stderr); !waits && lines.Scan(); { // until it says that it waits, or ends
		log.WriteString(lines.Text() + "\n")
		waits = strings.Contains(lines.Text(), "create topics") && strings.Contains(lines.Text(), "connection refused")
	}
	if !waits {
		t.Errorf("it does not wait for its brokers: %s", log.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	_, _ = io.Copy(io.Discard, stderr) // until it ends
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to end while it waits, it ends with %v: %s", err, log.String())
	}
}
