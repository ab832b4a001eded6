package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/cmd/bai/internal/joining"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestAnOperatorDemandsSealsOfWhatComesFromNowOn(t *testing.T) {
	t.Parallel()
	broker, dir := kafkatest.Start(t, event.Topics()...), t.TempDir()
	key := filepath.Join(dir, "seal.key")
	j := joining.Settings{Store: filepath.Join(dir, "store.db"), Kafka: kafka.Settings{Brokers: broker.Addrs, SigningKeyFile: key}}
	if err := errors.Join(os.WriteFile(key, []byte("the key of the seals of a test\n"), 0o600), j.Write(dir)); err != nil {
		t.Fatal(err)
	}
	wants := func(verb, line string) {
		t.Helper()
		out, err := administer(t, "seals", verb, "--data", dir)
		for l := range strings.Lines(out) {
			if strings.Join(strings.Fields(l), " ") == line {
				return
			}
		}
		t.Errorf("%s: %v\n%s\nwant %s", verb, err, out, line)
	}
	publishEnd(t, kafka.Settings{Brokers: broker.Addrs})
	wants("show", "TOPIC PARTITION FIRST END SEALS FROM WITHOUT SEAL")
	wants("show", "bai.finished 0 0 1 not demanded 1 of 1")
	wants("require", "bai.finished 0 0 1 1 1 of 1")
	wants("require", "bai.submitted 0 0 0 0 0 of 0")
	wants("require", "seals are demanded of every message from these offsets on")
	publishEnd(t, j.Kafka)
	wants("require", "bai.finished 0 0 2 1 1 of 2")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if out, err := administer(t, "seals", "require", "--data", dir); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("%q, %v, want the file that is not there", out, err)
	}
}

// publishEnd publishes with these settings that a run has ended.
func publishEnd(t *testing.T, s kafka.Settings) {
	t.Helper()
	b, err := kafka.NewBus(s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	h := event.NewHeader("e1", "r1", "pets", "ann", time.Unix(0, 0))
	if err := b.Publish(t.Context(), event.Finished{Header: h, Outcome: event.Succeeded}); err != nil {
		t.Fatal(err)
	}
}

func TestAllThatComesToANewBrokerMustHaveASeal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		made string
		open int
	}{"a new folder": {".", 0}, "the folder of an earlier version": {"broker/data", len(kafka.SignedTopics())}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{dir: &datadir.Dir{Path: t.TempDir()}, store: storetest.Open(t)}
			if err := os.MkdirAll(p.dir.Join(tt.made), 0o700); err != nil {
				t.Fatal(err)
			}
			in := kafka.SignaturePolicyStore{Docs: p.store}
			p.settings.Kafka.SignaturePolicy = in
			if err := p.sealNew(t.Context()); err != nil {
				t.Fatal(err)
			}
			seals, err := in.Policy(t.Context())
			if err != nil || len(seals.UnsignedTopics()) != tt.open {
				t.Errorf("%v, %v, want %d topics without", seals, err, tt.open)
			}
		})
	}
}

func TestTheKeysOfAPlatformAreItsUsersAlone(t *testing.T) {
	t.Parallel()
	d := &datadir.Dir{Path: t.TempDir()}
	token, err := d.KeyFile()
	if err != nil {
		t.Fatal(err)
	}
	seal, err := d.SealFile()
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]bool)
	for _, path := range []string{token, seal} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want 0600", path, info, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[string(text)] = true
	}
	if len(texts) != 2 {
		t.Error("both keys are one")
	}
	if err := os.WriteFile(seal, make([]byte, 53), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SealFile(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(seal); err != nil || strings.Contains(string(text), "\x00") {
		t.Errorf("a key of zeros is taken: %q, %v", text, err)
	}
}
