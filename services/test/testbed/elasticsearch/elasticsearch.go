// Package elasticsearch gives a test a real Elasticsearch.
//
// It is the one at BAI_TEST_ELASTICSEARCH (a URL) if this is set. Else, and only if
// BAI_TEST_REAL is 1, it is one in a container if Docker answers, or the server itself,
// made of artefacts of the JVM package registry: a node without security and most
// modules, which answers requests for them with an error. Otherwise the test is skipped.
//
// Containers have never been tested: the developers' machines have no Docker.
package elasticsearch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/benchmark-ai/bai/services/test/testbed/docker"
	"github.com/benchmark-ai/bai/services/test/testbed/jvm"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// Version is that of the server that Start starts.
const Version = "8.19.7"

// Server is an Elasticsearch that a test may use.
type Server struct {
	URL string

	process   *jvm.Process
	container *docker.Container
}

// Start returns a server that answers, for as long as the test lasts, or skips
// the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if url := os.Getenv("BAI_TEST_ELASTICSEARCH"); url != "" {
		return &Server{URL: strings.TrimSuffix(url, "/")}
	}
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs Elasticsearch: set BAI_TEST_REAL=1 to have one started (Docker, or Java 17 and Maven), or BAI_TEST_ELASTICSEARCH to the URL of one")
	}
	if docker.Healthy(tb.Context()) {
		return startContainer(tb)
	}
	return startLocal(tb)
}

// Own starts a server for the test alone, whatever BAI_TEST_ELASTICSEARCH is, which may
// be killed. Without BAI_TEST_REAL the test is skipped.
func Own(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs an Elasticsearch that it may kill: set BAI_TEST_REAL=1 to have one started (Docker, or Java 17 and Maven)")
	}
	if docker.Healthy(tb.Context()) {
		return startContainer(tb)
	}
	return startLocal(tb)
}

// Kill ends a server of the test's own at once, as a crash would.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	switch {
	case s.process != nil:
		s.process.Kill()
	case s.container != nil:
		s.container.Kill(tb)
	default:
		tb.Fatal("an Elasticsearch that others use must not be killed: begin one with Own")
	}
}

// Restart restarts the server after Kill, with its data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if s.process != nil {
		s.process.Restart(tb)
		return
	}
	s.container.Restart(tb)
}

// Prefix returns a unique prefix for the names of indices and templates, which are
// deleted with the test.
func (s *Server) Prefix(tb testing.TB) string {
	tb.Helper()
	prefix := "t" + strings.ToLower(rand.Text())
	tb.Cleanup(func() {
		for _, what := range []string{"/", "/_index_template/"} {
			if err := s.remove(context.WithoutCancel(tb.Context()), what+prefix+"-*"); err != nil {
				tb.Errorf("remove what the test has left in Elasticsearch: %v", err)
			}
		}
	})
	return prefix
}

func (s *Server) remove(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.URL+what, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("%s: %s", what, resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// heap is the server's, as Java writes it.
func heap() string {
	if h := os.Getenv("BAI_TEST_ELASTICSEARCH_HEAP"); h != "" {
		return h
	}
	return "512m"
}

func startLocal(tb testing.TB) *Server {
	tb.Helper()
	java, err := jvm.Java()
	if err != nil {
		tb.Fatalf("start Elasticsearch: %v", err)
	}
	dir, err := jvm.Fetch(tb.Context(), "elasticsearch")
	if err != nil {
		tb.Fatalf("start Elasticsearch: %v", err)
	}
	dir = filepath.Join(dir, "elasticsearch-"+Version)
	home := jvm.NewHome(tb, "elasticsearch")
	ports := port.ForTest(tb, 2)
	configure(tb, home, dir, ports)
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", ports[0])}
	env := []string{
		"ES_JAVA_HOME=" + java, "ES_PATH_CONF=" + home.Path("config"), "ES_TMPDIR=" + home.Path("tmp"),
		"CLI_JAVA_OPTS=-Djava.io.tmpdir=" + home.Path("tmp"),
	}
	s.process = home.Begin(tb, s.ready, env, filepath.Join(dir, "bin", "elasticsearch"), "-p", home.Path("pid"))
	return s
}

// configure writes the server's configuration.
func configure(tb testing.TB, home *jvm.Home, dir string, ports []int) {
	tb.Helper()
	for _, name := range []string{"jvm.options", "log4j2.properties"} {
		b, err := os.ReadFile(filepath.Join(dir, "config", name)) //nolint:gosec // of the server
		if err != nil {
			tb.Fatal(err)
		}
		home.Write(tb, "config/"+name, string(b))
	}
	// A server of tests lives for minutes: what the best compiler costs, it does not bring in. The collector stays G1, which Elasticsearch
	// asks to collect before it refuses requests for want of memory.
	home.Write(tb, "config/jvm.options.d/tests.options",
		fmt.Sprintf("-Xms%[1]s\n-Xmx%[1]s\n-XX:TieredStopAtLevel=1\n-XX:-AlwaysPreTouch\n", heap()))
	home.Write(tb, "tmp/.keep", "")
	home.Write(tb, "config/elasticsearch.yml", fmt.Sprintf(`cluster.name: bai-testbed
node.name: testbed
network.host: 127.0.0.1
http.port: %d
transport.port: %d
discovery.type: single-node
path.data: %s
path.logs: %s
xpack.security.enabled: false
# A nearly full disk must not turn indices read-only under a test.
cluster.routing.allocation.disk.threshold_enabled: false
# Tests clean up with wildcards.
action.destructive_requires_name: false
# Many suites share the node, each with indices of its own.
cluster.max_shards_per_node: 5000
`, ports[0], ports[1], home.Path("data"), home.Path("logs")))
}

// startContainer runs the server in a container.
func startContainer(tb testing.TB) *Server {
	tb.Helper()
	number := fmt.Sprint(port.ForTest(tb, 1)[0]) // the same after it was killed
	c := docker.Run(tb, "docker.elastic.co/elasticsearch/elasticsearch:"+Version,
		testcontainers.WithExposedPorts("127.0.0.1:"+number+":9200/tcp"),
		testcontainers.WithEnv(map[string]string{
			"discovery.type": "single-node", "xpack.security.enabled": "false", "action.destructive_requires_name": "false",
			"cluster.routing.allocation.disk.threshold_enabled": "false", "ES_JAVA_OPTS": "-Xms" + heap() + " -Xmx" + heap(),
		}),
		testcontainers.WithWaitStrategyAndDeadline(10*time.Minute,
			wait.ForHTTP("/_cluster/health?wait_for_status=yellow&timeout=1s").WithPort("9200/tcp")),
	)
	return &Server{URL: "http://" + c.Address(tb, "9200/tcp"), container: c}
}

// ready says whether all shards of the server can be used: it answers earlier.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/_cluster/health?wait_for_status=yellow&timeout=4s", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("health: %s", resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
