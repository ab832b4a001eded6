//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestTheAPIListensWhereOthersReachItOnlyIfThatIsSaid(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{ // address → whether other machines can reach it
		"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true, host + ":0": !onLoopback(t, host+":0"),
	}
	if onLoopback(t, "[::1]:0") { // there is IPv6
		tests["[::1]:0"], tests["[::]:0"] = false, true
	}
	for listen, open := range tests {
		for _, allowed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, allowed %t", listen, allowed), func(t *testing.T) {
				t.Parallel()
				wantListener(t, options{listen: listen, allowAnyone: allowed}, open)
			})
		}
	}
}

// wantListener checks whether a platform listens as configured, and warns.
func wantListener(t *testing.T, o options, open bool) {
	t.Helper()
	var log bytes.Buffer
	o.log = &log
	p := &platform{options: o}
	err := p.listen(t.Context())
	if refused := err != nil; refused != (open && !o.allowAnyone) {
		t.Errorf("it says %v", err)
	}
	if err != nil {
		return
	}
	if err := errors.Join(p.openLog(t.Context()), p.close()); err != nil {
		t.Fatal(err)
	}
	if warned := strings.Contains(log.String(), "anyone who reaches"); warned != open {
		t.Errorf("the log warns: %t, want %t: %s", warned, open, log.String())
	}
}

// onLoopback reports whether addr is a loopback address that can be listened on.
func onLoopback(t *testing.T, addr string) bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close() //nolint:errcheck // only asked for its address
	at, ok := l.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// TestTheEmbeddedBrokerHasPasswordsOfItsOwn opens the bus of a platform several times
// on one data folder.
func TestTheEmbeddedBrokerHasPasswordsOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := &datadir.Dir{Path: t.TempDir()}
	begin := func() *platform {
		p := &platform{dir: dir, log: zap.NewNop(), store: storetest.Open(t)}
		if err := p.openBus(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := begin()
	first := make(map[string]string)
	for _, name := range []string{platformPassword, podsPassword} {
		info, err := os.Stat(dir.Join(name))
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("%s: %v, %v", name, info, err)
		}
		first[name] = read(t, dir.Join(name))
	}
	if key := read(t, dir.Join("token.key")); first[platformPassword] == first[podsPassword] || strings.Contains(key, first[podsPassword]) {
		t.Error("two of the key and the passwords are the same")
	}
	wantAccess(t, p, p.settings.Kafka.SASL, []string{event.TopicStatus, event.TopicFinished})
	wantAccess(t, p, p.settings.Kafka.Pods.SASL, []string{event.TopicStatus})
	wantAccess(t, p, access.SASL{}, nil)
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Join(podsPassword), nil, 0o600); err != nil { // as after a crash of the machine
		t.Fatal(err)
	}
	p = begin()
	if got := read(t, dir.Join(podsPassword)); got != first[podsPassword] {
		t.Error("a password that was lost is another than before: pods that run would lose the broker")
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
}

// wantAccess checks which topics of the embedded broker a user can write to.
func wantAccess(t *testing.T, p *platform, user access.SASL, topics []string) {
	t.Helper()
	bus, err := kafka.NewBus(kafka.Settings{Brokers: p.settings.Kafka.Brokers, Token: "token", Access: access.Access{SASL: user}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	head := event.NewHeader("id", "run", "default", "tester", time.Unix(0, 0).UTC())
	for _, e := range []event.Event{
		event.Status{Header: head, Phase: event.PhaseRunning, Message: "m"},
		event.Finished{Header: head, Outcome: event.Succeeded, Message: "m"},
	} {
		may := slices.Contains(topics, e.Topic())
		if err := bus.Publish(shortContext(t, may), e); (err == nil) != may {
			t.Errorf("%q writes to %s: %v, want %t", user.User, e.Topic(), err, may)
		}
	}
}

func shortContext(t *testing.T, may bool) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{true: time.Minute, false: time.Second}[may])
	t.Cleanup(cancel)
	return ctx
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	return strings.TrimSpace(string(b))
}

// TestABrokerThatOldPodsKnowAsksNobodyUntilTheyHaveEnded holds the lock of a pod that
// an earlier version started.
func TestABrokerThatOldPodsKnowAsksNobodyUntilTheyHaveEnded(t *testing.T) {
	t.Parallel()
	dir := &datadir.Dir{Path: t.TempDir()}
	pods := dir.Join("pods/live")
	if err := os.MkdirAll(pods, 0o700); err != nil {
		t.Fatal(err)
	}
	pod, err := os.Create(filepath.Join(pods, "old.lock")) //nolint:gosec // a folder of the test
	if err == nil {
		err = syscall.Flock(int(pod.Fd()), syscall.LOCK_EX) //nolint:gosec // a descriptor
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, ended := range []bool{false, true} {
		if ended {
			if err := pod.Close(); err != nil {
				t.Fatal(err)
			}
		}
		p := &platform{dir: dir, log: zap.NewNop(), store: storetest.Open(t)}
		if err := p.openBus(t.Context()); err != nil {
			t.Fatal(err)
		}
		topics := []string{event.TopicStatus, event.TopicFinished}
		if ended {
			topics = nil
		}
		wantAccess(t, p, access.SASL{}, topics)
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
	}
}
