//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/test/ci/stage"
	"github.com/benchmark-ai/bai/services/test/ci/suite"
)

// project is the beginning of the paths of all modules.
const project = "github.com/benchmark-ai/bai/"

// suite builds and runs the test binaries of a suite, as many beside each other as
// the suite says.
func (c *check) suite(ctx context.Context, s suite.Suite, o options) stage.Result {
	results := make([]stage.Result, len(s.Packages))
	var packages errgroup.Group
	packages.SetLimit(max(1, s.Beside))
	for i, pkg := range s.Packages {
		packages.Go(func() error {
			results[i] = c.testPackage(ctx, s, pkg, o)
			return nil
		})
	}
	_ = packages.Wait() // errors are in the results
	var all stage.Result
	for _, r := range results {
		all.Tests, all.Err, all.CPU = all.Tests.Add(r.Tests), errors.Join(all.Err, r.Err), all.CPU+r.CPU
	}
	if len(all.Tests.Skips) > 0 && c.servers.own() {
		all.Err = errors.Join(all.Err,
			fmt.Errorf("skipped, although everything is there that tests need:\n%s", strings.Join(all.Tests.Skips, "\n")))
	}
	return all
}

func (c *check) testPackage(ctx context.Context, s suite.Suite, pkg string, o options) stage.Result {
	name := strings.ReplaceAll(strings.TrimPrefix(pkg, "../"), "/", "_")
	log, err := c.log(s.Name + " " + name)
	if err != nil {
		return stage.Result{Err: err}
	}
	defer log.Close() //nolint:errcheck // its writes are checked
	binary, err := c.testBinary(ctx, pkg, name)
	if err != nil {
		return stage.Result{Err: err}
	}
	path := project + "services/" + pkg
	if own, ok := strings.CutPrefix(pkg, "../"); ok {
		path = project + own
	}
	args := s.Args(o.long)
	if o.run != "" {
		args = append(args, "-test.run="+o.run)
	}
	env := append(s.Environ(o.long), c.servers.environ(s.Needs)...)
	cmd := c.cmd(ctx, env, append([]string{"go", "tool", "test2json", "-t", "-p", path, binary}, args...)...)
	cmd.Dir = filepath.Join(c.root, "services", pkg)
	return c.watched(ctx, cmd, log, time.Duration(s.Limit))
}

// testBinary builds the test binary of a package, unless this check has built it
// before.
func (c *check) testBinary(ctx context.Context, pkg, name string) (string, error) {
	path := filepath.Join(c.logs, "tests", name+".test")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	log, err := c.log("build " + name)
	if err != nil {
		return "", err
	}
	defer log.Close() //nolint:errcheck // only read afterwards
	dir, env := filepath.Join(c.root, "services"), []string(nil)
	if strings.HasPrefix(pkg, "../") { // a module of its own, which no linter looks at
		dir, env, pkg = filepath.Join(dir, pkg), []string{"GOWORK=off"}, ""
		vet := c.cmd(ctx, env, "go", "vet", ".")
		vet.Dir, vet.Stdout, vet.Stderr = dir, log, log
		if err := vet.Run(); err != nil {
			return "", fmt.Errorf("go vet in %s: %w\n%s", dir, err, lastLines(log.Name(), 20))
		}
	}
	cmd := c.cmd(ctx, env, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-o", path, "./"+pkg)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", name, err, lastLines(log.Name(), 20))
	}
	return path, nil
}
