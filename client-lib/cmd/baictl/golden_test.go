package main_test

import (
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// every is a name and a command line for each output of each verb.
func every() map[string]string {
	all := map[string]string{
		"list-none":         "list --owner nobody",
		"list-filters":      "list -A --phase finished --outcome failed,canceled -o name",
		"list-limit":        "list -A --limit 2 -o name",
		"list-label":        "list --label model=x -o name",
		"get-failed":        "get " + failedID,
		"get-by-name":       "get benchmark --name=hello -o name",
		"get-missing":       "get nothing",
		"logs-filters":      "logs hello --tail 4 --stderr --timestamps",
		"logs-tail":         "logs hello --tail 2 --container benchmark --attempt 1 --stdout",
		"logs-follow":       "logs -f hello",
		"logs-name":         "logs hello -o name",
		"metrics-csv":       "metrics hello -o csv",
		"metrics-one":       "metrics hello --metric loss",
		"metrics-none":      "metrics " + runningID,
		"cancel-again":      "cancel hello " + runningID + " nothing",
		"validate-two":      "validate good.toml bad.toml",
		"validate-stdin":    "validate - -o json",
		"validate-missing":  "validate nowhere.toml bad.toml",
		"submit-missing":    "submit nowhere.toml good.toml",
		"submit-two":        "submit good.toml good.toml",
		"submit-noun":       "submit benchmark --descriptor=good.toml --name x --label a=b",
		"submit-name-taken": "submit good.toml --name hello",
		"version-client":    "version --client",
		"help":              "--help",
		"help-run":          "run --help",
		"help-logs":         "help logs",
		"completion":        "__complete get 01",
		"completion-flag":   "__complete list --phase f",
		"no-verb":           "gte hello",
		"no-flag":           "list --fast",
		"no-argument":       "watch",
		"much-arguments":    "watch a b",
		"no-output":         "list -o xml",
		"bad-label":         "submit good.toml --label x",
		"bad-phase":         "list --phase walking",
		"bad-server":        "list --server http://localhost:1",
	}
	for verb, line := range map[string]string{
		"validate": "validate good.toml",
		"invalid":  "validate bad.toml",
		"submit":   "submit good.toml --idempotency-key k",
		"run":      "run good.toml --idempotency-key k",
		"watch":    "watch hello",
		"get":      "get hello",
		"list":     "list",
		"logs":     "logs hello",
		"metrics":  "metrics hello",
		"cancel":   "cancel " + runningID,
		"version":  "version",
	} {
		for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
			if verb != "logs" || format != "name" {
				all[verb+"-"+format] = line + " -o " + format
			}
		}
	}
	return all
}

// settled replaces what differs from one test to the next.
func settled(text string, p *baitest.Platform) string {
	text = strings.ReplaceAll(text, p.Addr(), "127.0.0.1:7070")
	text = strings.ReplaceAll(text, runtime.Version(), "go1.99")
	text = strings.ReplaceAll(text, runtime.GOOS+"/"+runtime.GOARCH, "os/arch")
	return regexp.MustCompile(`"?idempotencyKey"?: "?[A-Z2-7]{26}"?`).ReplaceAllString(text, "idempotencyKey: KEY")
}

// finishing makes each submitted run live for ten seconds of the platform's.
func finishing(p *baitest.Platform) {
	p.OnSubmit(func(id string) {
		history(p, id, func(s int) *timestamppb.Timestamp {
			return timestamppb.New(newYear.Add(245*time.Second + time.Duration(s)*time.Second))
		})
		p.Complete(id, &baiv1.Completeness{Complete: true, Samples: 3, Lines: 1})
	})
}

// age is when a run was submitted whose age is shown in minutes.
func age(name string) time.Time {
	if strings.HasPrefix(name, "list-table") || strings.HasPrefix(name, "list-wide") {
		return time.Now().Add(-5*time.Minute - 10*time.Second)
	}
	return newYear
}

func TestOutputInAPipe(t *testing.T) {
	for name, line := range every() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := world(t, age(name))
			finishing(p)
			cmd := command(t, p.Addr(), strings.Fields(line)...)
			cmd.Stdin = strings.NewReader("[info]\nfoo = 1\n")
			golden.Check(t, filepath.Join("testdata", "pipe", name+".txt"), settled(finish(t, cmd).String(), p))
		})
	}
}

func TestOutputOnATerminalOf80Columns(t *testing.T) {
	for _, name := range []string{
		"list-table", "list-wide", "get-table", "watch-table", "run-table", "run-json", "metrics-table", "metrics-wide", "logs-table",
		"submit-wide", "validate-two", "version-table", "cancel-table", "get-missing", "list-none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := world(t, age(name))
			finishing(p)
			s := open(t, command(t, p.Addr(), strings.Fields(every()[name])...), 80)
			s.end()
			golden.Check(t, filepath.Join("testdata", "terminal", name+".txt"), settled(s.screen(), p))
		})
	}
}
