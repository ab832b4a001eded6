// Package kafka gives a test a real Apache Kafka broker.
//
// That is the one at BAI_TEST_KAFKA (HOST:PORT) where this is set. Else, and only
// where BAI_TEST_REAL is 1, it is one in a container where Docker answers, or the
// broker itself, made of artefacts of the JVM package registry: broker and
// controller in one process. Without either the test is skipped.
//
// The way by containers was never run on the machines where this was written:
// they have no Docker.
package kafka

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/benchmark-ai/bai/services/test/testbed/docker"
	"github.com/benchmark-ai/bai/services/test/testbed/jvm"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// Version is that of the broker that Start starts.
const Version = "4.1.1"

// Server is a broker that a test may use. It makes no topics by itself.
type Server struct {
	Addr string // HOST:PORT

	// Of a guarded broker.
	CA     string // path of the PEM file of its CA
	Mutual Mutual

	process   *jvm.Process
	container *docker.Container
}

// Start returns a broker that answers, for as long as the test lasts, or skips
// the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if addr := os.Getenv("BAI_TEST_KAFKA"); addr != "" {
		return &Server{Addr: addr}
	}
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs Kafka: set BAI_TEST_REAL=1 to have one started (Docker, or Java 17 and Maven), or BAI_TEST_KAFKA to the address of one")
	}
	if docker.Healthy(tb.Context()) {
		return startContainer(tb)
	}
	return startLocal(tb)
}

// OwnUnkilled starts a broker for the test alone, whatever BAI_TEST_KAFKA is, which may
// be emptied. It must not be killed: its long session timeouts survive pauses of a busy
// machine.
func OwnUnkilled(tb testing.TB) *Server {
	tb.Helper()
	if docker.Healthy(tb.Context()) {
		return startContainer(tb)
	}
	return startLocal(tb, "broker.session.timeout.ms=60000")
}

// Own starts a broker for the test alone, whatever BAI_TEST_KAFKA is, which may be
// killed. Without BAI_TEST_REAL the test is skipped.
func Own(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs a Kafka that it may kill: set BAI_TEST_REAL=1 to have one started (Docker, or Java 17 and Maven)")
	}
	if docker.Healthy(tb.Context()) {
		return startContainer(tb)
	}
	return startLocal(tb)
}

// Kill ends a broker of the test's own at once, as a crash would.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	switch {
	case s.process != nil:
		s.process.Kill()
	case s.container != nil:
		s.container.Kill(tb)
	default:
		tb.Fatal("a Kafka that others use must not be killed: begin one with Own")
	}
}

// Restart restarts the broker after Kill, with its data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if s.process != nil {
		s.process.Restart(tb)
		return
	}
	s.container.Restart(tb)
}

func startLocal(tb testing.TB, further ...string) *Server {
	tb.Helper()
	ports := port.ForTest(tb, 2)
	return begin(tb, fmt.Sprintf("127.0.0.1:%d", ports[0]), append([]string{
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", ports[0], ports[1]),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:%d", ports[0]),
		fmt.Sprintf("controller.quorum.voters=1@127.0.0.1:%d", ports[1]),
	}, further...), nil)
}

// begin starts a broker of the settings beside the common ones, which listens to
// tests at addr.
func begin(tb testing.TB, addr string, settings, format []string) *Server {
	tb.Helper()
	java, err := jvm.Java()
	if err != nil {
		tb.Fatalf("start Kafka: %v", err)
	}
	lib, err := jvm.Fetch(tb.Context(), "kafka")
	if err != nil {
		tb.Fatalf("start Kafka: %v", err)
	}
	home := jvm.NewHome(tb, "kafka")
	home.Write(tb, "server.properties", strings.Join(append(append(common(), settings...), "log.dirs="+home.Path("data"), ""), "\n"))
	home.Write(tb, "log4j2.properties", logging)
	name, _ := os.Hostname() // it may have none
	home.Write(tb, "hosts", strings.TrimSpace("127.0.0.1 localhost "+name)+"\n")
	// Stopping at the first compiler saves two fifths of the start time.
	argv := []string{
		filepath.Join(java, "bin", "java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		// A broker asks for its own name at each connection, and takes no other until a
		// server of names has answered, or has not for long.
		"-Djdk.net.hosts.file=" + home.Path("hosts"),
		"-Djava.io.tmpdir=" + home.Dir, // for the libraries of its codecs, which a kill leaves
		"-Dlog4j2.configurationFile=" + home.Path("log4j2.properties"), "-cp", filepath.Join(lib, "*"),
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[0] &= 0x7f        // its text must not begin with a dash
	format = append([]string{
		"kafka.tools.StorageTool", "format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c",
		home.Path("server.properties"),
	}, format...)
	home.Run(tb, nil, append(slices.Clip(argv), format...)...)
	s := &Server{Addr: addr}
	s.process = home.Begin(tb, s.ready, nil, append(argv, "kafka.Kafka", home.Path("server.properties"))...)
	return s
}

// ready says whether the broker takes connections: it listens to clients once it
// is part of the cluster.
func (s *Server) ready(ctx context.Context) error {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// logging keeps a broker from printing every setting at every start.
const logging = `rootLogger.level=WARN
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c{1} %m%n
`

// common are settings of a broker that is alone and is tested with.
func common() []string {
	return []string{
		"process.roles=broker,controller", "node.id=1", "controller.listener.names=CONTROLLER",
		// Its own topics can have one copy only, and need few partitions.
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		// Tests name their topics: a wrong name must fail.
		"auto.create.topics.enable=false",
		// Groups do not wait for more members before they begin, nor long for a killed
		// one.
		"group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000",
		// A broker that was killed may come back only when its old session has ended: 9 s by default.
		"broker.session.timeout.ms=1000", "broker.heartbeat.interval.ms=300",
		// Retention and compaction act within seconds.
		"log.initial.task.delay.ms=1000", "log.retention.check.interval.ms=1000", "log.cleaner.backoff.ms=1000",
		"log.cleaner.dedupe.buffer.size=16777216",
	}
}

// startContainer runs the broker in a container, which names each setting by a
// variable.
func startContainer(tb testing.TB) *Server {
	tb.Helper()
	number := fmt.Sprint(port.ForTest(tb, 1)[0]) // clients must find the broker where it says it is
	env := map[string]string{}
	lines := append(common(), "listeners=PLAINTEXT://:"+number+",CONTROLLER://:9093", "advertised.listeners=PLAINTEXT://127.0.0.1:"+number,
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", "controller.quorum.voters=1@localhost:9093")
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		env["KAFKA_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = value
	}
	c := docker.Run(tb, "apache/kafka:"+Version, testcontainers.WithExposedPorts("127.0.0.1:"+number+":"+number+"/tcp"),
		testcontainers.WithEnv(env),
		testcontainers.WithWaitStrategyAndDeadline(10*time.Minute, wait.ForLog("Kafka Server started")))
	return &Server{Addr: "127.0.0.1:" + number, container: c}
}
