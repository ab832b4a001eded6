package flake_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/test/ci/flake"
	"github.com/benchmark-ai/bai/services/test/ci/gotest"
)

func TestTheTableCountsEachWayOfAFailureApart(t *testing.T) {
	t.Parallel()
	bad := func(test string, why ...string) gotest.Report {
		return gotest.Report{Failures: []gotest.Failure{{Package: "github.com/benchmark-ai/bai/services/watcher", Test: test, Why: why}}}
	}
	var r flake.Record
	for range 2 {
		r.Add(flake.Idle, gotest.Report{Passed: 3})
		r.Add(flake.Busy, bad("TestA", "    a_test.go:9: took 812 ms"))
		r.Add(flake.OneCore, bad("TestB", "    b_test.go:3: no answer", "        after 1m0s"))
	}
	r.Add(flake.Idle, bad("TestA", "    a_test.go:9: took 1201 ms"))
	r.Add(flake.Busy, bad("TestA", "panic: closed channel", "    a.go:70"))
	if !r.Failed() {
		t.Error("nothing failed")
	}
	golden.Check(t, "testdata/table.txt", []byte(r.Table()))
}

func TestTurnsWithoutAFailureSaySo(t *testing.T) {
	t.Parallel()
	var r flake.Record
	r.Add(flake.Idle, gotest.Report{Passed: 3})
	if r.Failed() {
		t.Error(r.Table())
	}
}
