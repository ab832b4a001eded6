//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/benchmark-ai/bai/services/test/ci/scratch"
	"github.com/benchmark-ai/bai/services/test/ci/stage"
	"github.com/benchmark-ai/bai/services/test/ci/suite"
)

// servers are those that suites share. Where the environment names servers of the
// caller's, these are used and left alone.
type servers struct {
	folder *scratch.Folder

	addresses   struct{ Kafka, Elasticsearch string }
	keeper      *exec.Cmd // of Kafka and Elasticsearch
	input       io.Closer // which ends the keeper
	clusterTool string
	cluster     string // name of the cluster
}

// own reports whether all servers are the check's own, so that no test has a
// reason to be skipped.
func (*servers) own() bool {
	return os.Getenv("KUBECONFIG") == "" && os.Getenv("BAI_TEST_KAFKA") == "" && os.Getenv("BAI_TEST_ELASTICSEARCH") == ""
}

// environ are the variables by which tests find the servers of their suite.
func (s *servers) environ(needs string) []string {
	switch {
	case needs == suite.Servers && s.keeper != nil:
		return []string{"BAI_TEST_KAFKA=" + s.addresses.Kafka, "BAI_TEST_ELASTICSEARCH=" + s.addresses.Elasticsearch}
	case needs == suite.Cluster && s.cluster != "":
		return []string{"BAI_BED=" + s.cluster}
	}
	return nil
}

// beginning is the stage that starts the servers of a suite.
func (c *check) beginning(needs string) stage.Stage {
	s := stage.Stage{
		Name: "begin " + needs, Lane: laneOf(needs == suite.Cluster), Setup: true, After: []string{"test bed"},
		Budget: time.Minute, Run: func(ctx context.Context) stage.Result {
			return stage.Result{Err: c.beginServers(context.WithoutCancel(ctx))} // they end with the check
		},
	}
	if needs == suite.Cluster {
		s.Budget = 2 * time.Minute
		s.Run = c.beginCluster
	}
	return s
}

// buildTestBed builds the programs that start servers, and the parts of a cluster if this
// machine lacks them.
func (c *check) buildTestBed(ctx context.Context) stage.Result {
	services := filepath.Join(c.root, "services")
	c.servers.clusterTool = filepath.Join(c.logs, "bed")
	for _, p := range [][2]string{
		{c.servers.clusterTool, "./test/testbed/cmd"},
		{filepath.Join(c.logs, "servers"), "./test/testbed/servers"},
	} {
		if r := c.command("build "+filepath.Base(p[0]), "go", "-C", services, "build", "-o", p[0], p[1])(ctx); r.Err != nil {
			return r
		}
	}
	return c.command("kit", c.servers.clusterTool, "build")(ctx)
}

// beginServers starts Kafka and Elasticsearch.
func (c *check) beginServers(ctx context.Context) (err error) {
	if !c.servers.own() {
		return nil
	}
	log, err := c.log("servers")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the keeper has it
	cmd := c.cmd(ctx, []string{"BAI_TEST_REAL=1"}, filepath.Join(c.logs, "servers"))
	cmd.Stderr = log
	if c.servers.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.servers.keeper = cmd
	if err := json.NewDecoder(out).Decode(&c.servers.addresses); err != nil {
		return fmt.Errorf("start Kafka and Elasticsearch: %w\n%s", errors.Join(err, c.servers.endKeeper()), lastLines(log.Name(), 25))
	}
	return nil
}

// beginCluster starts the cluster with two nodes.
func (c *check) beginCluster(ctx context.Context) stage.Result {
	if os.Getenv("KUBECONFIG") != "" {
		return stage.Result{}
	}
	c.servers.cluster = "check-" + filepath.Base(c.folder.Path)[len("bai-check-"):]
	return c.command("cluster", c.servers.clusterTool, "up", c.servers.cluster, "2")(ctx)
}

// end ends the servers that run.
func (s *servers) end(ctx context.Context) error {
	var errs []error
	if s.cluster != "" {
		cmd := exec.CommandContext(ctx, s.clusterTool, "down", s.cluster) //nolint:gosec // the check's own
		cmd.Env = s.folder.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("end the cluster: %w\n%s", err, out))
		}
		s.cluster = ""
	}
	return errors.Join(append(errs, s.endKeeper())...)
}

// endKeeper ends Kafka and Elasticsearch.
func (s *servers) endKeeper() error {
	if s.keeper == nil {
		return nil
	}
	err := errors.Join(s.input.Close(), s.keeper.Wait())
	s.keeper = nil
	return err
}
