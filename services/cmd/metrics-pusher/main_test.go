package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/cmd/internal/deployedtest"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// key is the platform's key.
const key = "0123456789abcdef"

// envRun is the variable that makes this test binary run the program.
const envRun = "BAI_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(envRun) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestKilled kills the process again and again while samples arrive. Each sample must
// be stored once.
func TestKilled(t *testing.T) {
	broker, path := kafkatest.Start(t, event.Topics()...), filepath.Join(t.TempDir(), "bai.db")
	file := writeFile(t, fmt.Sprintf("store = %q\n[log]\nlevel = \"error\"\n[kafka]\nbrokers = [%q]\nkey_file = %q\nretry = \"10ms\"\nsession = \"1s\"\n", path, broker.Addrs[0], writeFile(t, key)))
	opened, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // only read
	const kills, between = 3, 40
	for n := range kills * between {
		ship(t, broker, event.Metrics{Header: header(fmt.Sprint(n)), Stream: source(), Samples: []event.Sample{storetest.NewSample(int64(2*n), "x", 1), storetest.NewSample(int64(2*n+1), "x", 1)}})
		if n%between != 0 {
			continue
		}
		kill := spawn(t, file)
		wait(t, opened, fmt.Sprintf("0 lines, %d samples", 2*(n+1)))
		kill()
	}
	defer spawn(t, file)()
	wait(t, opened, fmt.Sprintf("0 lines, %d samples", 2*kills*between))
	if n := broker.Count(t, event.TopicDead); n > 0 {
		t.Errorf("%d dead letters", n)
	}
	samples, _, err := opened.Samples(t.Context(), store.SampleQuery{Run: "r"}, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if s.Seq != int64(i) {
			t.Fatalf("sample %d is %d", i, s.Seq)
		}
	}
}

// spawn starts the program in a separate process, and returns a function that kills it.
func spawn(t *testing.T, file string) (kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0], "index", "-config", file) //nolint:gosec // this very program, killed below
	c.Env, c.Stderr = append(os.Environ(), envRun+"=1"), os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = c.Wait() // the error is that of a killed process
	}
}

// TestProcess runs the whole process against a broker, as in a container. It stores
// messages from before its start and after its restart, and writes invalid messages to
// the dead letters.
func TestProcess(t *testing.T) {
	broker, path := kafkatest.Start(t, event.Topics()...), filepath.Join(t.TempDir(), "bai.db")
	file := writeFile(t, fmt.Sprintf("store = %q\n[log]\nlevel = \"error\"\n[kafka]\nbrokers = [%q]\nkey_file = %q\nretry = \"10ms\"\n[metrics-pusher]\nbatch = 8\n", path, broker.Addrs[0], writeFile(t, key)))
	opened, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // only read

	for n := range 3 {
		ship(t, broker, event.Metrics{Header: header(fmt.Sprint("m", n)), Stream: source(), Samples: []event.Sample{storetest.NewSample(int64(n), "x", 1)}})
		ship(t, broker, event.Logs{Header: header(fmt.Sprint("l", n)), Stream: source(), Lines: []event.Line{storetest.NewLine(int64(n), "text")}})
	}
	ship(t, broker, event.Metrics{Header: header("bad"), Stream: source(), Samples: []event.Sample{storetest.NewSample(-1, "x", 1)}})
	stop := start(t, file)
	wait(t, opened, "3 lines, 3 samples")
	if dead := broker.Read(t, event.TopicDead); !strings.Contains(fmt.Sprint(dead), "seq -1") {
		t.Errorf("dead letter: %v", dead)
	}
	stop()

	ship(t, broker, event.Metrics{Header: header("m3"), Stream: source(), Samples: []event.Sample{storetest.NewSample(3, "x", 1)}})
	stop = start(t, file)
	wait(t, opened, "3 lines, 4 samples")
	stop()
}

// TestSinksAreFilledBesideTheStore has the process copy samples to a folder, and to a
// sink that is down and must delay nothing.
func TestSinksAreFilledBesideTheStore(t *testing.T) {
	broker, dir := kafkatest.Start(t, event.Topics()...), t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("a secret of at least 24 bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, fmt.Sprintf(`store = %q
[log]
level = "error"
[kafka]
brokers = [%q]
key_file = %q
retry = "10ms"
[sinks.folder]
path = %q
format = "csv"
[sinks.webhook]
url = "http://127.0.0.1:1/"
secret_file = %q
samples = true
`, filepath.Join(dir, "bai.db"), broker.Addrs[0], writeFile(t, key), filepath.Join(dir, "samples"), secret))
	for n := range 3 {
		ship(t, broker, event.Metrics{Header: header(fmt.Sprint("m", n)), Stream: source(), Samples: []event.Sample{storetest.NewSample(int64(n), "x", float64(n))}})
	}
	stop := start(t, file)
	opened, err := sqlite.Open(t.Context(), filepath.Join(dir, "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // only read
	wait(t, opened, "0 lines, 3 samples")
	lines := 0
	for end := time.Now().Add(time.Minute); lines < 4 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		found, _ := filepath.Glob(filepath.Join(dir, "samples", "r", "*.csv"))
		if len(found) == 1 {
			text, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			lines = strings.Count(string(text), "\n")
		}
	}
	if lines != 4 {
		t.Errorf("%d lines in the folder, want 3 samples and the names of columns", lines)
	}
	stop()
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"no command":             {nil, []string{"usage: metrics-pusher index"}},
		"another command":        {[]string{"collect"}, []string{"usage: metrics-pusher index", "bai-pod-ship collect"}},
		"all faults at once":     {[]string{"index", "--config", writeFile(t, "[metrics-pusher]\nbatch = -1\n[log]\nlevel = \"loud\"\n")}, []string{"store: ", "log.level", "kafka.brokers", "kafka.key_file", "metrics-pusher.batch"}},
		"a sink that lacks much": {[]string{"index", "--config", writeFile(t, "store = \"s.db\"\n[kafka]\nbrokers = [\"b:1\"]\n[sinks.folder]\nformat = \"x\"\n[sinks.webhook]\nurl = \"x\"\n")}, []string{"sinks.folder.path", "sinks.folder.format", "sinks.webhook.url", "sinks.webhook.secret_file"}},
		"a misspelt setting":     {[]string{"index", "--config", writeFile(t, "[metrics-pusher]\nbacht = 1\n")}, []string{"unknown settings: metrics-pusher.bacht"}},
		"no file":                {[]string{"index", "-config", "/nowhere.toml"}, []string{"no such file"}},
		"no store":               {[]string{"index", "-config", writeFile(t, fmt.Sprintf("store = \"/\"\n[kafka]\nbrokers = [\"127.0.0.1:1\"]\nkey_file = %q\n", writeFile(t, key)))}, []string{"/", "is not a file"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := realMain(t.Context(), tt.args)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("realMain: %v, want an error with %q", err, want)
				}
			}
		})
	}
}

// start runs the process, and returns a function that stops it.
func start(t *testing.T, file string) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- realMain(ctx, []string{"index", "-config", file}) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	}
}

// wait waits until the store has the expected content.
func wait(t *testing.T, opened *sqlite.Store, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		streams, err := opened.Streams(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		c := store.Complete(store.Run{}, streams)
		if got = fmt.Sprintf("%d lines, %d samples", c.Lines, c.Samples); got == want {
			return
		}
	}
	t.Fatalf("stored %s, want %s", got, want)
}

func ship(t *testing.T, broker *kafkatest.Broker, ev event.Event) {
	t.Helper()
	m, err := event.Encode(ev)
	if err != nil {
		t.Fatal(err)
	}
	broker.Write(t, m.Topic, kafkatest.Message{Key: m.Key, Value: string(m.Value), Headers: map[string]string{"ce_id": m.ID, "ce_type": m.Type, "bai_token": access.TokenFor([]byte(key), m.Key)}})
}

func header(id string) event.Header {
	return event.NewHeader(id, "r", "pets", "ann", time.Unix(1, 0).UTC())
}

func source() event.Stream { return storetest.NewOrigin("r", "p").Stream }

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.toml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheSettingsThatAreDeployedAreOnesThatThisProgramHas(t *testing.T) {
	deployedtest.WantLoaded(t, func() config.Validator { return &settings{} })
}
