package e2e_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
)

// TestAPlatformWaitsForBrokersThatAreAway: a platform that starts before its brokers,
// also with a full replay, reports that it waits, and works once they are up.
func TestAPlatformWaitsForBrokersThatAreAway(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"started": nil, "started to replay": {"--replay"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, begin := kafkatest.StartLater(t)
			dir := t.TempDir()
			write(t, filepath.Join(dir, "settings.toml"), "[kafka.topics]\npartitions = 2\nreplication = 1\n")
			p := &platform{
				t: t, dir: filepath.Join(dir, "data"), args: args, log: &lockedBuffer{},
				servers: []string{"--kafka", addr, "--config", filepath.Join(dir, "settings.toml")},
			}
			t.Cleanup(p.stop)
			began := make(chan error, 1)
			go func() { began <- p.tryBegin() }()
			eventually(t, func() error {
				if !strings.Contains(p.log.String(), "connection refused") {
					return errors.New("the platform does not say that it waits for its brokers")
				}
				return nil
			})
			begin()
			if err := <-began; err != nil {
				t.Fatalf("start: %v\n%s", err, p.log)
			}
			if r := p.awaitComplete(p.submit(script("echo hi"))); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
				t.Errorf("ended as %v", r)
			}
		})
	}
}
