package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// TestMain is also the process that the tests kill.
func TestMain(m *testing.M) {
	dir := os.Getenv("BROKER_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	b, err := broker.Start(broker.Settings{Dir: dir})
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(b.Addr() + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent test ends
}

func TestWhatWasAcknowledgedSurvivesKilling(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, addr := spawn(t, dir)
	bus := connect(t, addr)

	ctx, stop := context.WithCancel(t.Context())
	var acknowledged atomic.Int64
	publisher := make(chan struct{})
	go func() {
		defer close(publisher)
		for i := 0; ctx.Err() == nil; i++ {
			if bus.Publish(ctx, status(i)) == nil {
				acknowledged.Add(1)
			}
		}
	}()
	for range 4 {
		for goal := acknowledged.Load() + 200; acknowledged.Load() < goal; {
			time.Sleep(time.Millisecond)
		}
		process.kill()
		var restartedAddr string
		if process, restartedAddr = spawn(t, dir); restartedAddr != addr {
			t.Fatalf("after a restart at %s, want %s", restartedAddr, addr)
		}
	}
	stop()
	<-publisher

	received := make(map[string]bool)
	listen(t, bus, func(s event.Status) bool {
		received[s.Message] = true
		return int64(len(received)) >= acknowledged.Load()
	})
	for i := range acknowledged.Load() {
		if !received[fmt.Sprint(i)] {
			t.Errorf("event %d of %d was acknowledged and is gone", i, acknowledged.Load())
		}
	}
}

func TestADirectoryIsUsedByOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, broker.Settings{Dir: dir})
	_, err := broker.Start(broker.Settings{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the process %d uses this directory", os.Getpid())) {
		t.Errorf("Start: %v, want the process that uses the directory", err)
	}
}

func TestMembersThatDieWhileTheyJoinAreRemoved(t *testing.T) {
	t.Parallel()
	kafkatest.MembersThatDieLeave(t, start(t, broker.Settings{Dir: t.TempDir()}).Addr(), event.TopicStatus)
}

func TestTheAddressStaysTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, broker.Settings{Dir: dir})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if second := start(t, broker.Settings{Dir: dir}); second.Addr() != first.Addr() {
		t.Errorf("at %s, want %s again", second.Addr(), first.Addr())
	}
}

func TestTheAddressOfANameStaysTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "door")
	var first string
	for _, host := range []string{"localhost", "localhost", "127.0.0.1", "::ffff:127.0.0.1", "localhost"} {
		l, err := broker.Listen(host, path)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = l.Addr().String()
		}
		if now := l.Addr().String(); now != first || l.Close() != nil {
			t.Errorf("Listen(%q): first at %s, then at %s", host, first, now)
		}
	}
	if _, err := broker.Listen("no name", path); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("Listen: %v, want the name", err)
	}
}

func TestAPortThatIsTakenIsNamedWithTheRemedy(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	addr := l.Addr().String()

	_, err = broker.Start(broker.Settings{Dir: t.TempDir(), Addr: addr})
	if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("Start: %v, want the address and the remedy", err)
	}

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(addr), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = broker.Start(broker.Settings{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, "port")) {
		t.Errorf("Start: %v, want the address and the remedy", err)
	}
	if _, err = broker.Start(broker.Settings{Dir: dir, Addr: "127.0.0.1:0"}); err != nil {
		t.Errorf("a start that failed keeps the directory: %v", err)
	}
}

func TestItTakesMessagesOfTheSizeThatItWasTold(t *testing.T) {
	t.Parallel()
	b := start(t, broker.Settings{Dir: t.TempDir(), MaxMessageBytes: 2_000_000})
	s := kafka.Settings{Brokers: []string{b.Addr()}, Retry: time.Millisecond, Topics: kafka.TopicSettings{MaxMessage: 2_000_000}}
	bus, err := kafka.NewBus(s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	large := status(1)
	large.Message = strings.Repeat("x", 1_970_000)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := bus.Publish(ctx, large); err != nil {
		t.Error(err)
	}
}

func TestSettingsAtFaultAreNamedTogether(t *testing.T) {
	t.Parallel()
	err := broker.Settings{Partitions: -1, MaxTopicBytes: 1, MaxMessageBytes: -1}.Validate()
	for _, name := range []string{"broker.dir", "broker.partitions", "broker.disk", "broker.message"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Validate: %v, want %s named", err, name)
		}
	}
}

func TestAGroupGoesOnWhereItWasAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, addr := spawn(t, dir)
	bus := connect(t, addr)
	publish := func(i int) {
		if err := bus.Publish(t.Context(), status(i)); err != nil {
			t.Fatal(err)
		}
	}
	publish(0)
	listen(t, bus, func(event.Status) bool { return true })
	process.kill()
	spawn(t, dir)
	publish(1)
	listen(t, bus, func(s event.Status) bool {
		if s.Message != "1" {
			t.Errorf("heard %q again, want only what is new", s.Message)
		}
		return true
	})
}

// brokerProcess is a broker in a process of its own.
type brokerProcess struct {
	kill func()
	pid  int
	addr string
}

// spawn starts a broker in a process of its own.
func spawn(t *testing.T, dir string) (brokerProcess, string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), "BROKER_DIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = in.Close()
		_ = cmd.Wait() // the error is that of the kill
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "127.") {
		t.Fatalf("start: %q, %v", line, err)
	}
	return brokerProcess{kill: kill, pid: cmd.Process.Pid, addr: strings.TrimSpace(line)}, strings.TrimSpace(line)
}

func start(t *testing.T, s broker.Settings) *broker.Broker {
	t.Helper()
	b, err := broker.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() }) // a second time if the test did it
	return b
}

func connect(tb testing.TB, addr string) *kafka.Bus {
	tb.Helper()
	bus, err := kafka.NewBus(kafka.Settings{Brokers: []string{addr}, Retry: time.Millisecond}, zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(bus.Close)
	return bus
}

// listen receives status events until done returns true, and commits them.
func listen(t *testing.T, bus *kafka.Bus, done func(event.Status) bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var last atomic.Bool
	part := bus.Consume("test", service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		if done(s) {
			last.Store(true)
			time.AfterFunc(200*time.Millisecond, stop) // long enough to commit
		}
		return nil, nil
	}))
	if err := part(ctx); err != nil {
		t.Error(err)
	}
	if !last.Load() {
		t.Error("waited 30 s in vain")
	}
}

func status(i int) event.Status {
	h := event.NewHeader(fmt.Sprint("m", i), "r1", "pets", "ann", time.Unix(0, 0).UTC())
	return event.Status{Header: h, Phase: event.PhaseRunning, Message: fmt.Sprint(i)}
}
