//go:build linux

// Command bed boots Kubernetes on this machine, for tests.
//
//	bed build                  build or fetch the parts of clusters, Kafka and Elasticsearch, once on a machine
//	bed up NAME [NODES]        boot, 2 nodes by default, and leave it up; print the kubeconfig's path
//	bed down NAME              end it, and leave nothing
//	bed info NAME              print its addresses, as JSON
//	bed load NAME TAR…         import images on every node
//	bed exec NAME MACHINE CMD… run a program inside a machine
//
// keep and machine are commands for its own use.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/jvm"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
	"github.com/benchmark-ai/bai/services/test/testbed/kwok"
	"github.com/benchmark-ai/bai/services/test/testbed/mpioperator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := dispatch(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bed:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	verb, name := "", "bed"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	if verb == "machine" && len(args) == 1 {
		return kubecluster.Machine(ctx, args[0])
	}
	if verb == "keep" && len(args) == 1 {
		return keep(ctx, args[0])
	}
	if verb == "build" && len(args) == 0 {
		return build(ctx)
	}
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch {
	case verb == "up":
		return up(ctx, name, args)
	case verb == "down":
		return down(ctx, name)
	case verb == "info":
		return info(name)
	case verb == "load" && len(args) > 0:
		return with(name, func(i kubecluster.Info) error { return i.Import(ctx, args...) })
	case verb == "exec" && len(args) > 1:
		return with(name, func(i kubecluster.Info) error {
			out, err := i.Inside(ctx, args[0], args[1:]...)
			return errors.Join(err, write(out))
		})
	}
	return errors.New("usage: bed build | up NAME [NODES] | down NAME | info NAME | load NAME TAR… | exec NAME MACHINE CMD…")
}

// build builds the parts of test servers. Nodes need root: without it only the control
// plane is built.
func build(ctx context.Context) error {
	nodes := os.Geteuid() == 0
	_, err := kit.Build(ctx, kit.Want{Nodes: nodes})
	if nodes && err == nil {
		_, err = kit.Bench().Tar(ctx)
	}
	for _, build := range []func(context.Context) (string, error){mpioperator.Build, kwok.Build} {
		if err == nil {
			_, err = build(ctx)
		}
	}
	for _, set := range []string{"kafka", "elasticsearch"} {
		if err == nil {
			_, err = jvm.Fetch(ctx, set)
		}
	}
	return err
}

// order holds the settings of a keeper.
type order struct {
	Settings kubecluster.Settings
	Owned    bool // it ends with its standard input
}

// keep keeps the cluster that the order asks for, and prints how it is reached.
func keep(ctx context.Context, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Owned {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	return kubecluster.Keep(ctx, o.Settings, func(i kubecluster.Info) error {
		err := json.NewEncoder(os.Stdout).Encode(i)
		return errors.Join(err, os.Stdout.Close())
	})
}

// up boots a cluster and leaves it up; one that is up already is fine.
func up(ctx context.Context, name string, args []string) error {
	nodes := 2
	if len(args) > 0 {
		var err error
		if nodes, err = strconv.Atoi(args[0]); err != nil {
			return fmt.Errorf("%q is not a number of nodes", args[0])
		}
	}
	info, err := kubecluster.Read(name)
	if errors.Is(err, os.ErrNotExist) {
		info, _, err = testbed.Boot(ctx, kubecluster.Settings{Name: name, Nodes: nodes}, false)
	}
	if err != nil {
		return err
	}
	return write([]byte(info.Kubeconfig + "\n"))
}

func down(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := with(name, func(i kubecluster.Info) error { return i.Down(ctx) })
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func info(name string) error {
	return with(name, func(i kubecluster.Info) error {
		text, err := json.MarshalIndent(i, "", "  ")
		return errors.Join(err, write(append(text, '\n')))
	})
}

func with(name string, f func(kubecluster.Info) error) error {
	i, err := kubecluster.Read(name)
	if err != nil {
		return err
	}
	return f(i)
}

func write(b []byte) error {
	_, err := os.Stdout.Write(b)
	return err
}
