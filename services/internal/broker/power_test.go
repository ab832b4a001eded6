package broker_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/powertest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// cuts are the states in which a crash of the machine may leave a file that was written lately.
func cuts() map[string]func(path string) error {
	return map[string]func(path string) error{
		"its last bytes are missing": powertest.Truncate,
		"it is empty":                powertest.Empty,
		"it is absent":               os.Remove,
		"it has a page of zeros":     powertest.ZeroMiddle,
		"it is longer than it was":   powertest.Extend,
	}
}

// TestABrokerGoesOnAfterThePowerWasCut applies each cut to each file of a broker, and to all at once: the broker starts, reports its
// losses, and the earlier consumers receive all new events.
func TestABrokerGoesOnAfterThePowerWasCut(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	writeRecords(t, whole)
	for name, cut := range cuts() {
		for _, file := range append(filesBelow(t, whole), "") {
			if topic := filepath.Base(filepath.Dir(file)); file == "lock" || strings.HasPrefix(topic, "bai.") && !strings.HasPrefix(topic, "bai.status") {
				continue // it is empty
			}
			t.Run(name+"/"+strings.ReplaceAll(file, "/", " "), func(t *testing.T) {
				t.Parallel()
				wantWorking(t, cutCopy(t, whole, file, cut))
			})
		}
	}
}

// cutCopy returns a copy of a broker's folder with one of its files cut, or all of
// them.
func cutCopy(t *testing.T, whole, file string, cut func(string) error) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "broker")
	if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	if file != "port" && os.Remove(filepath.Join(dir, "port")) != nil { // other tests have cut the port file
		t.Fatal("no port is kept")
	}
	cutOff := []string{file}
	if file == "" { // all at once
		cutOff = slices.DeleteFunc(filesBelow(t, dir), func(f string) bool { return f == "lock" })
	}
	for _, f := range cutOff {
		if err := cut(filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeRecords runs a broker in dir that stores records of several batches, and groups that have consumed all of them.
func writeRecords(t *testing.T, dir string) {
	t.Helper()
	b, err := broker.Start(broker.Settings{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	bus := connect(t, b.Addr())
	for i := range 60 {
		if err := bus.Publish(t.Context(), statusOf(fmt.Sprint("r", i%7), i)); err != nil {
			t.Fatal(err)
		}
	}
	if messages := consumeUntil(t, bus.Consume, func(n int) bool { return n >= 60 }); len(messages) != 60 {
		t.Fatalf("heard %d of 60", len(messages))
	}
	bus.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantWorking checks that the broker of dir starts, and that the group receives all events that are published from now on.
func wantWorking(t *testing.T, dir string) {
	t.Helper()
	b, err := broker.Start(broker.Settings{Dir: dir, VerifyAll: true})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("mended: %q", b.Repairs())
		}
	}()
	bus := connect(t, b.Addr())
	for i := range 20 {
		if err := bus.Publish(t.Context(), statusOf(fmt.Sprint("r", i%7), 1000+i)); err != nil {
			t.Fatal(err)
		}
	}
	fresh := 0
	messages := consumeUntil(t, bus.Consume, func(int) bool { return false }, func(m string) bool {
		if len(m) == 4 {
			fresh++
		}
		return fresh == 20
	})
	for i := range 20 {
		if !slices.Contains(messages, fmt.Sprint(1000+i)) {
			t.Errorf("what was published after the start is not heard: %d", 1000+i)
		}
	}
}

// consumeUntil consumes until enough returns true for the number of events, and returns the events once all of them are committed.
func consumeUntil(t *testing.T, consume func(string, service.Step) service.Runnable, enough func(n int) bool, last ...func(string) bool) []string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var mu sync.Mutex
	var messages []string
	run := consume("test", service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, s.Message)
		if enough(len(messages)) || len(last) > 0 && last[0](s.Message) {
			time.AfterFunc(300*time.Millisecond, stop) // long enough to commit
		}
		return nil, nil
	}))
	if err := run(ctx); err != nil {
		t.Error(err)
	}
	return messages
}

// filesBelow returns the paths of all files below dir, relative to it.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files = append(files, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// statusOf is a status event of a run.
func statusOf(run string, i int) event.Status {
	h := event.NewHeader(fmt.Sprint("m", i), run, "pets", "ann", time.Unix(0, 0).UTC())
	return event.Status{Header: h, Phase: event.PhaseRunning, Message: fmt.Sprint(i)}
}
