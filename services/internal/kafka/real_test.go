package kafka_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	realkafka "github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

// TestOnARealKafka runs all other tests of the package again, one at a time, on
// a real broker.
func TestOnARealKafka(t *testing.T) {
	broker := realkafka.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.parallel=1", "-test.skip=^TestOnARealKafka$", "-test.timeout=9m", "-test.v")
	cmd.Env = append(os.Environ(), kafkatest.EnvRealBroker+"="+broker.Addr)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Errorf("on a real broker: %v", err)
	}
}
