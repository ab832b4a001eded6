package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// work is a benchmark that the platform is watched with: it does an amount of
// something, and takes the time of that alone.
type work struct {
	name string
	do   func(amount int) error
	limits
}

// works are the benchmarks, in the order in which they run. The limits for a work that
// prints are wider, because a collector must read its output.
func works() []work {
	quiet, loud := limits{within: 0.01, touches: 0.005}, limits{within: 0.03, touches: 0.02}
	return []work{
		{"cpu", compute, quiet},
		{"memory", stream, quiet},
		{"network", transfer, quiet},
		{"disk", writeDisk, quiet},
		{"print", computeAndPrint, loud},
	}
}

// perform does an amount of the work of a name, and prints how long it took, or
// the time of its first instruction.
func perform(out io.Writer, name string, amount int) error {
	switch name {
	case "now":
		_, err := fmt.Fprintf(out, "now=%d\n", time.Now().UnixNano())
		return err
	case "nothing":
		return nil
	case "wait":
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		return nil
	}
	for _, w := range works() {
		if w.name != name {
			continue
		}
		begin := time.Now()
		if err := w.do(amount); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "took=%.6f\n", time.Since(begin).Seconds())
		return err
	}
	return fmt.Errorf("there is no work %q", name)
}

// onAllCores does the same on each core, at once.
func onAllCores(do func() error) error {
	var wg sync.WaitGroup
	failed := make([]error, runtime.GOMAXPROCS(0))
	for i := range failed {
		wg.Go(func() { failed[i] = do() })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// compute hashes 16 MiB, which a core's cache holds a part of, amount times a core.
func compute(amount int) error {
	return onAllCores(func() error {
		block := make([]byte, 64<<10)
		for range amount * 256 {
			sum := sha256.Sum256(block)
			copy(block, sum[:])
		}
		return nil
	})
}

// stream adds arrays of 64 MiB, which no cache holds, amount times a core.
func stream(amount int) error {
	return onAllCores(func() error {
		a, b := make([]float64, 8<<20), make([]float64, 8<<20)
		for n := range amount {
			for i := range a {
				a[i] += float64(n) * b[i]
			}
		}
		return nil
	})
}

// transfer sends amount times 16 MiB over loopback, in pieces of 64 KiB.
func transfer(amount int) (err error) {
	ctx := context.Background() // it ends with this process
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	sent := make(chan error, 1)
	go func() { sent <- send(ctx, listener.Addr().String(), amount*256) }()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for range amount * 256 {
		if _, err := io.ReadFull(conn, block); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return errors.Join(<-sent, conn.Close())
}

func send(ctx context.Context, addr string, blocks int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for range blocks {
		if _, err := conn.Write(block); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

// writeDisk writes a file of 16 MiB and has it on the disk, amount times.
func writeDisk(amount int) (err error) {
	if err := os.MkdirAll(os.TempDir(), 0o700); err != nil { // a small image has none
		return err
	}
	file, err := os.CreateTemp("", "bench-disk-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, 16<<20)
	for range amount {
		if _, err := file.WriteAt(block, 0); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// computeAndPrint is compute, with 4,000 lines a second beside it.
func computeAndPrint(amount int) error {
	go write(os.Stdout, 4000)
	return compute(amount)
}
