package kafka_test

import (
	"net"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

func TestABrokerAnswersAgainAfterItWasKilled(t *testing.T) {
	s := kafka.Own(t)
	s.Kill(t)
	if c, err := net.Dial("tcp", s.Addr); err == nil {
		t.Errorf("it answers at %s, want nobody there", c.RemoteAddr())
	}
	s.Restart(t)
}
