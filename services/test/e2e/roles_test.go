package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// answerer builds the program that is a server, or a client.
func answerer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "answer")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "testdata/answer/main.go").CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	return program
}

// withRoles returns a descriptor with the roles of some tables, and three metrics.
func withRoles(tables ...string) string {
	text := command("true")
	for _, metric := range []string{"answer", "asked", "observed"} {
		text += fmt.Sprintf("[[output.metrics]]\nname = %q\nunits = \"count\"\npattern = '%s=(\\d+)'\n", metric, metric)
	}
	return text + strings.Join(tables, "\n")
}

// role returns the table of a role whose command is a script; $PROGRAM stands for a program in it.
func role(name, program, script, keys string) string {
	return fmt.Sprintf("[[roles]]\nname = %q\nbenchmark_code = '''\n#!/bin/sh -eu\n%s\n'''\n%s\n", name, strings.ReplaceAll(script, "$PROGRAM", program), keys)
}

// Two servers are ready by a port and a third one over HTTP; the client asks all of them, and
// the observer starts once the client has written a line, and ends last: the client waits for
// a file of the observer.
func TestARunOfFourRoles(t *testing.T) {
	t.Parallel()
	program, seen := answerer(t), filepath.Join(t.TempDir(), "seen")
	p := start(t)
	run := p.submit(withRoles(
		role("server", program, "exec $PROGRAM", "replicas = 2\nready = { port = 8080 }"),
		role("web-cache", program, "exec $PROGRAM", "ready = { http = \":8080/ping\" }"),
		role("client", program, `for host in $BAI_HOSTS_SERVER $BAI_HOSTS_WEB_CACHE; do $PROGRAM "http://$host:8080"; done; echo "client done"; until [ -e `+seen+` ]; do sleep 0.05; done`,
			"starts_after = [\"server\", \"web-cache\"]\nends_run = true\nready = { log = '^client done$' }"),
		role("observer", program, `touch `+seen+`; sleep 1; echo "$BAI_ROLE $BAI_ROLE_INDEX observed=$(echo $BAI_HOSTS_SERVER | wc -w)"`,
			"starts_after = [\"client\"]\nends_run = true"),
	))
	r := p.awaitComplete(run)
	lines := p.lines(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(lines, "\n"))
	}
	got := p.metricValues(run)
	for _, values := range got {
		slices.Sort(values)
	}
	want := map[string][]float64{"answer": {40, 40, 40, 41, 41, 41, 42, 42, 42}, "asked": {0, 0, 0, 1, 1, 1, 2, 2, 2}, "observed": {2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	for _, line := range []string{"out client done", "out observer 0 observed=2", "out asked=2"} {
		if !slices.Contains(lines, line) {
			t.Errorf("no line %q:\n%s", line, strings.Join(lines, "\n"))
		}
	}
	if diff := cmp.Diff(map[string][]string{"answer": {"client"}, "asked": {"server", "web-cache"}, "observed": {"observer"}}, p.rolesOfSamples(run)); diff != "" {
		t.Errorf("roles of samples (-want +got):\n%s", diff)
	}
	wantNoPod(t, p, run)
	wantNoNetwork(t, p)
}

// rolesOfSamples returns the roles whose pods gave the samples of each metric that the descriptor names.
func (p *platform) rolesOfSamples(run string) map[string][]string {
	p.t.Helper()
	stream, err := p.api.QueryMetrics(p.t.Context(), &baiv1.QueryMetricsRequest{Run: run})
	if err != nil {
		p.t.Fatal(err)
	}
	roles := map[string][]string{}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return roles
		}
		if err != nil {
			p.t.Fatalf("metrics of %s: %v", run, err)
		}
		for _, s := range r.GetSamples() {
			if all := roles[s.GetMetric()]; !strings.HasPrefix(s.GetMetric(), "system.") && !slices.Contains(all, s.GetOrigin().GetRole()) {
				roles[s.GetMetric()] = append(all, s.GetOrigin().GetRole())
				slices.Sort(roles[s.GetMetric()])
			}
		}
	}
}

func TestARoleThatFailsOrIsNeverReadyEndsTheRunAndIsNamed(t *testing.T) {
	t.Parallel()
	p := start(t)
	waits := role("client", "", "echo never", "starts_after = [\"server\"]\nends_run = true")
	for name, tt := range map[string]struct {
		server, reason, message string
	}{
		"no answer on its port":        {role("server", "", "sleep 600", "ready = { port = 8080 }"), "NotReady", "server 0 (port 8080) did not answer within limits.pending_deadline, 3s"},
		"no line in its log":           {role("server", "", "sleep 600", "ready = { log = 'x' }"), "NotReady", "server 0 (by its file or its log) did not answer within limits.pending_deadline, 3s"},
		"one of two has failed":        {role("server", "", "[ $BAI_ROLE_INDEX = 0 ] || exit 3; sleep 600", "replicas = 2\nready = { port = 8080 }"), "NonZeroExit", "the server 1"},
		"one ends before others begin": {role("server", "", "sleep 1; exit 0", "ends_run = true\nready = { port = 8080 }"), "EndedEarly", "has ended before the client 0"},
		"one has ended too soon":       {role("server", "", "exit 0", "ready = { port = 8080 }"), "EndedEarly", "the server 0"},
	} {
		r := p.awaitEnd(p.submit(withRoles(tt.server, waits, "[limits]\npending_deadline = \"3s\"\n")))
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != tt.reason || !strings.Contains(r.GetMessage(), tt.message) {
			t.Errorf("%s: ended as %v", name, r)
		}
	}
	wantNoNetwork(t, p)
}
