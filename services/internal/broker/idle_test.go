package broker_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// BenchmarkIdle measures how much of a core a broker and the consumers of a whole platform take without events.
func BenchmarkIdle(b *testing.B) {
	server, err := broker.Start(broker.Settings{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	bus := connect(b, server.Addr())
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	for i := range 14 {
		part := bus.Consume(fmt.Sprint("g", i), service.Step{Topic: event.Topics()[i%9]})
		wg.Go(func() {
			if err := part(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	time.Sleep(3 * time.Second) // until all have joined
	for b.Loop() {
		before := cpu(b)
		time.Sleep(10 * time.Second)
		b.ReportMetric(100*(cpu(b)-before).Seconds()/10, "%core")
	}
	stop()
	wg.Wait()
	if err := server.Close(); err != nil {
		b.Error(err)
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
