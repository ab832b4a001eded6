package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"go.uber.org/zap"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// untilThere is a benchmark that exits with its own code once a file exists.
func untilThere(file string) string {
	return script(`echo ready; while ! [ -e ` + file + ` ]; do sleep 0.1; done; exit 7`)
}

// TestWhoHoldsAPodsCredentialsDecidesNothing: an attacker with write access to the broker
// and the token of a running pod publishes that its run and another have ended, that they
// are canceled, that the next attempt begins, and that another descriptor is to be
// launched. The platform believes none of it.
func TestWhoHoldsAPodsCredentialsDecidesNothing(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "2")
	run, other := p.submit(untilThere(open)), p.submit(untilThere(open))
	p.awaitReady(run)
	p.awaitReady(other)
	if text := p.readiness(); text != "ready\n" {
		t.Errorf("a new platform says of itself %q, want that it is ready, and no more", text)
	}
	attacker := p.attacker(run)
	forge(t, attacker, run, other)
	p.awaitRefused(10)
	for _, id := range []string{run, other} {
		if r := p.get(id); r.GetPhase() != baiv1.Phase_PHASE_RUNNING {
			t.Errorf("run %s is %v, want that it runs", id, r)
		}
	}
	write(t, open, "")
	for _, id := range []string{run, other} {
		if r := p.awaitComplete(id); r.GetReason() != "NonZeroExit" || r.GetExitCode() != 7 || r.GetAttempt() != 1 {
			t.Errorf("run %s ended as %v, want exit 7 of its first attempt", id, r)
		}
	}
}

// TestAFolderOfAnEarlierVersionIsHeardAndThenSealed: the topics hold unsigned messages,
// runs are in flight, and the platform reports that it trusts every writer. Once
// signatures are required, forged events are refused, also in a replay from the first
// event, and the earlier ones are accepted.
func TestAFolderOfAnEarlierVersionIsHeardAndThenSealed(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	ended := p.submit(script("echo hi"))
	p.awaitComplete(ended)
	run := p.submit(untilThere(open))
	p.awaitReady(run)
	p.kill()
	p.removeSignatures()
	p.begin()
	eventually(t, func() error {
		if text := p.readiness(); !strings.Contains(text, "ready\nmessages without a seal are believed on bai.submitted,") {
			return errors.New("readiness says " + text)
		}
		if !strings.Contains(p.log.String(), "run 'bai admin seals require'") {
			return errors.New("the start does not say that messages without a seal are believed")
		}
		return nil
	})
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "bai"), "admin", "seals", "require", "--data", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, func() error { // it learns of it while it runs
		if text := p.readiness(); text != "ready\n" {
			return errors.New("readiness says " + text)
		}
		return nil
	})
	forge(t, p.attacker(run), run, ended)
	p.awaitRefused(10)
	p.args = []string{"--replay"}
	p.kill()
	p.begin()
	p.awaitRefused(10)
	write(t, open, "")
	if r := p.awaitComplete(run); r.GetReason() != "NonZeroExit" || r.GetExitCode() != 7 || r.GetAttempt() != 1 {
		t.Errorf("ended as %v, want exit 7 of its first attempt", r)
	}
	if r := p.get(ended); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("a run that had ended is %v", r)
	}
	if r := p.awaitComplete(p.submit(script("echo after"))); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("a new run ended as %v", r)
	}
	if text := p.readiness(); text != "ready\n" {
		t.Errorf("readiness says %q", text)
	}
}

// attacker returns a bus with the token of a run's pod, as a user who may write to every
// topic: without that right the broker itself refuses.
func (p *platform) attacker(run string) *kafka.Bus {
	p.t.Helper()
	for _, text := range secretsBelow(p.t, filepath.Join(p.dir, "pods")) {
		var c pod.Collect
		if json.Unmarshal([]byte(text), &c) != nil || c.Header.Run != run || c.Token == "" {
			continue
		}
		s := p.brokers()
		s.KeyFile, s.SigningKeyFile, s.Token, s.Source = "", "", c.Token, "pod"
		b, err := kafka.NewBus(s, zap.NewNop())
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(b.Close)
		return b
	}
	p.t.Fatalf("the pod of run %s has no credentials", run)
	return nil
}

// brokers are the settings by which services reach the platform's broker.
func (p *platform) brokers() kafka.Settings {
	p.t.Helper()
	var now struct{ Kafka kafka.Settings }
	if _, err := toml.DecodeFile(filepath.Join(p.dir, "services.toml"), &now); err != nil {
		p.t.Fatal(err)
	}
	return now.Kafka
}

// forge publishes for each run the five events that only services may publish.
func forge(t *testing.T, attacker *kafka.Bus, runs ...string) {
	t.Helper()
	for _, run := range runs {
		h := event.NewHeader(event.Derive("forged", run), run, "default", "tester", time.Now().UTC())
		next := h
		next.Attempt = 2
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		err := attacker.Publish(ctx,
			event.Finished{Header: h.Cause("finished", ""), Outcome: event.Succeeded, Message: "forged"},
			event.Command{Header: h.Cause("cancel", ""), Kind: event.CommandCancel, By: "forged"},
			event.Retried{Header: next.Cause("retried", ""), Class: event.ClassInfra, Reason: event.Evicted, Message: "forged"},
			event.Fetched{Header: next.Cause("fetched", ""), Descriptor: script("echo forged")},
			event.Submitted{Header: h.Cause("submitted", ""), Descriptor: script("echo forged")},
		)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// awaitRefused waits until that many forged messages are dead letters of the platform,
// each with a refused signature.
func (p *platform) awaitRefused(want int) {
	p.t.Helper()
	eventually(p.t, func() error {
		places := make(map[string]bool)
		for m, err := range kafka.Scan(p.t.Context(), p.brokers(), event.TopicDead, 0, 0) {
			if err != nil {
				return err
			}
			at := make(map[string]string)
			for _, h := range m.Headers {
				at[h.Key] = string(h.Value)
			}
			if strings.Contains(at[kafka.DeadReason], "the seal of a service") {
				places[at[kafka.DeadTopic]+"/"+at[kafka.DeadPartition]+"/"+at[kafka.DeadOffset]] = true
			}
		}
		if len(places) != want {
			return errors.New("refused: " + strings.Join(slices.Sorted(maps.Keys(places)), ", "))
		}
		return nil
	})
}

// removeSignatures makes the folder of a platform that does not run as one that never knew of
// seals.
func (p *platform) removeSignatures() {
	p.t.Helper()
	s, err := sqlite.Open(p.t.Context(), filepath.Join(p.dir, "store.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := s.Doc(p.t.Context(), store.KindSignatures, "seals")
	if err == nil {
		err = s.DeleteDoc(p.t.Context(), d)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	d, err = s.Doc(p.t.Context(), store.KindPeerBroker, "broker")
	if err != nil {
		p.t.Fatal(err)
	}
	d.Value = withoutField(p.t, d.Value, "seal")
	_, err = s.ReplaceDoc(p.t.Context(), d)
	mark := filepath.Join(p.dir, "broker", "store.json")
	write(p.t, mark, string(withoutField(p.t, contentOf(p.t, mark), "seals")))
	if err := errors.Join(err, s.Close(), os.Remove(filepath.Join(p.dir, "seal.key"))); err != nil {
		p.t.Fatal(err)
	}
}

// withoutField returns an object in JSON without a field, which it must have.
func withoutField(t *testing.T, text []byte, field string) []byte {
	t.Helper()
	all := make(map[string]json.RawMessage)
	err := json.Unmarshal(text, &all)
	if err == nil && all[field] == nil {
		err = errors.New("there is no " + field + " in " + string(text))
	}
	delete(all, field)
	var out []byte
	if err == nil {
		out, err = json.Marshal(all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAStoreThatIsLostDoesNotMakeThePlatformBelieveAnybody: the broker's folder, too,
// records the position from which on messages must be signed.
func TestAStoreThatIsLostDoesNotMakeThePlatformBelieveAnybody(t *testing.T) {
	t.Parallel()
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	run := p.submit(script("echo hi"))
	p.awaitComplete(run)
	p.stop()
	for _, name := range []string{"store.db", "store.db-wal", "store.db-shm"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	p.begin()
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("the run of before is %v", r)
	}
	if text := p.readiness(); text != "ready\n" {
		t.Errorf("readiness says %q", text)
	}
}
