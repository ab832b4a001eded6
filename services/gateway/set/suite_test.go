package set_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// suiteOf returns a suite of two descriptors with their texts, and that text in its table.
func suiteOf(table string) string {
	plain, _, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(descriptor(""), "{{size}}", ""), "{{n}}", ""), "[sweep]")
	return `[suite]
name = "nightly"
description = "both"
` + table + `
[suite.labels]
team = "a"
[[suite.entries]]
name = "plain"
descriptor = "plain.toml"
repetitions = 1
[suite.entries.values]
hardware.cpus = 2
[[suite.entries]]
name = "swept"
descriptor = "swept.toml"
[suite.entries.values]
n = 1
[[suite.descriptors]]
name = "plain.toml"
file = "b/plain.toml"
text = ` + strconv.Quote(plain) + `
[[suite.descriptors]]
name = "swept.toml"
text = ` + strconv.Quote(descriptor("[sweep.product]\nsize = [\"1K\", \"1M\"]\n")) + "\n"
}

// suitePlaces is the places of the runs of suiteOf("repetitions = 2\nwarmup = 1").
const suitePlaces = `plain 1
plain 1 warmup
swept/size=1K,n=1 1
swept/size=1K,n=1 1 warmup
swept/size=1K,n=1 2
swept/size=1M,n=1 1
swept/size=1M,n=1 1 warmup
swept/size=1M,n=1 2`

func TestASuiteIsOneSetOfTheRunsOfItsEntries(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(suiteOf("repetitions = 2\nwarmup = 1\nmax_parallel = 3\norder = 'interleaved'"))
	if s.Entries != 2 || s.Cells != 3 || s.Repetitions != 2 || s.MaxParallel != 3 || s.Order != "interleaved" || s.Description != "both" {
		t.Errorf("%+v", s)
	}
	s = g.runToEnd(s.ID)
	want(t, "set", summary(s), "finished, 8 of 8 submitted, 0 active, 8 succeeded, 0 failed, 0 canceled: succeeded")
	want(t, "runs", w.places(), suitePlaces)
	for _, r := range w.runs() {
		file, cpus := "swept.toml", "cpus = 1"
		if r.Cell == "plain" {
			file, cpus = "b/plain.toml", "cpus = 2"
		}
		if r.File != file || !strings.Contains(r.Descriptor, cpus) || strings.Contains(r.Descriptor, "suite") {
			t.Errorf("run %+v", r)
		}
		want(t, "labels", r.Labels, map[string]string{"suite": "nightly", "team": "a", "task_name": "t"})
	}
	cells, next, err := g.Cells(t.Context(), s, "", 10)
	if err != nil || next != "" || len(cells) != 3 {
		t.Fatalf("%d cells, %q, %v", len(cells), next, err)
	}
	want(t, "repetitions", []int{cells[0].Counted, cells[1].Counted, cells[2].Warmups}, []int{1, 2, 1})
	want(t, "parameters", cells[1].Parameters[0].Text, `"swept"`)
}

func TestEachRunOfASuiteIsMadeOnceWhereverAGatewayDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		dying := w.crashingGateway(p)
		text := []byte(suiteOf("repetitions = 2\nwarmup = 1\nmax_parallel = 3\norder = 'random'"))
		_, _, _ = dying.submit(submit.Request{Key: "k", Descriptor: text}) // the gateway may crash
		for more := true; more && !p.Dead(); {
			more, _ = dying.Reconcile(t.Context())
		}
		w.wait(20 * time.Second) // the lease ends
		second := w.gateway()
		s, _, err := second.submit(submit.Request{Key: "k", Descriptor: text})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		s = second.runToEnd(s.ID)
		want(t, p.String(), summary(s), "finished, 8 of 8 submitted, 0 active, 8 succeeded, 0 failed, 0 canceled: succeeded")
		want(t, p.String(), w.places(), suitePlaces)
	}
}

func TestTheSameSuiteIsTheSameSet(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	first := g.put(suiteOf(""))
	second, repeated, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(suiteOf(""))})
	if err != nil || !repeated || second.ID != first.ID {
		t.Errorf("%s, %t, %v", second.ID, repeated, err)
	}
	if _, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(suiteOf("repetitions = 7"))}); err == nil {
		t.Error("another suite under the same key")
	}
}

func TestWhatFailedInASuiteCanBeRunAgain(t *testing.T) {
	w := newFixture(t)
	g := w.gateway()
	s := g.put(suiteOf("max_parallel = 1"))
	g.pass()
	w.finishRuns(event.Failed) // of the entry plain
	s = g.runToEnd(s.ID)
	again, err := g.Rerun(t.Context(), "ann", s.ID, set.Rerun{Owner: "ann", Key: "again", Failed: true})
	if err != nil {
		t.Fatal(err)
	}
	again = g.runToEnd(again.ID)
	want(t, "rerun", summary(again), "finished, 1 of 1 submitted, 0 active, 1 succeeded, 0 failed, 0 canceled: succeeded")
	want(t, "entries", again.Entries, 2)
}

func TestASuiteWithMoreLabelsThanARunMayHaveIsRefused(t *testing.T) {
	for labels, accepted := range map[int]bool{62: true, 63: false} { // with team and suite
		w := newFixture(t)
		g := w.gateway()
		req := submit.Request{Key: "k", Descriptor: []byte(suiteOf("")), Labels: make(map[string]string)}
		for n := range labels {
			req.Labels["l"+strconv.Itoa(n)] = "x"
		}
		s, _, err := g.submit(req)
		if !accepted {
			if err == nil || !strings.Contains(err.Error(), "65 labels, 64 at most (remove some; of a suite, those in [suite.labels]") {
				t.Errorf("%d labels: %v", labels, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want(t, "set", g.runToEnd(s.ID).Outcome, event.Succeeded)
	}
}

func TestASuiteWithALabelThatNoRunMayHaveIsRefused(t *testing.T) {
	g := newFixture(t).gateway()
	reserved, _, _ := strings.Cut(cluster.LabelRun, "/")
	text := strings.Replace(suiteOf(""), `team = "a"`, strconv.Quote(reserved)+` = "a"`, 1)
	if _, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(text)}); err == nil || !strings.Contains(err.Error(), "label") {
		t.Error(err)
	}
}

func TestASuiteWantsTheCodeThatAnEntryWants(t *testing.T) {
	g := newFixture(t).gateway()
	text := strings.Replace(suiteOf(""), `benchmark_code = \"true  \"`, `benchmark_code = \"true\"\nscript = { script = \"code.tar\" }`, 1)
	if !strings.Contains(text, "code.tar") {
		t.Fatal(text)
	}
	if _, _, err := g.submit(submit.Request{Key: "k", Descriptor: []byte(text)}); err == nil || !strings.Contains(err.Error(), "wants code to be sent along") {
		t.Error(err)
	}
}
