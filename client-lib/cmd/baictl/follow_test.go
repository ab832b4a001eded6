package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func fetching(done, total int64, second int) *baiv1.Change {
	return &baiv1.Change{
		Phase: baiv1.Phase_PHASE_FETCHING, Time: timestamppb.New(newYear.Add(time.Duration(second) * time.Second)),
		Progress: &baiv1.Progress{Done: done, Total: total, Unit: "bytes"},
	}
}

func TestTheLiveLineTellsPhaseTimeProgressAndRate(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{CreateTime: timestamppb.Now()})
	s := open(t, command(t, p.Addr(), "watch", id), 50)
	p.Change(id, fetching(0, 40e6, 0))
	p.Change(id, fetching(10e6, 40e6, 1))
	s.await("10.0 MB of 40.0 MB  25%  10.0 MB/s")
	p.Change(id, fetching(30e6, 40e6, 2))
	s.await("30.0 MB of 40.0 MB  75%  15.0 MB/s")
	s.await("  1s  ") // time goes on though nothing happens
	long := strings.Repeat("下载", 50)
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING, Message: long})
	s.await("running  ")
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	if code := s.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
	want := "03:00:00  fetching    0 B of 40.0 MB\n03:04:08  running     " + long + "\n03:04:09  finished    succeeded\n"
	if got := s.screen(); got != want {
		t.Errorf("the terminal shows at the end\n%q, want\n%q", got, want)
	}
	for piece := range strings.SplitSeq(s.received(), "\r\x1b[K") {
		if !strings.HasSuffix(piece, "\r\n") && printer.Width(piece) > 49 {
			t.Errorf("a live line is too wide for the terminal: %q", piece)
		}
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	for name, tt := range map[string]struct {
		env    string
		colour bool
	}{
		"a terminal":      {"X=", true},
		"NO_COLOR":        {"NO_COLOR=1", false},
		"a dumb terminal": {"TERM=dumb", false},
		"no TERM":         {"TERM=", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFixture(t, newYear)
			cmd := command(t, p.Addr(), "list")
			cmd.Env = append(cmd.Env, tt.env)
			s := open(t, cmd, 80)
			s.end()
			if got := strings.Contains(s.received(), "\x1b[31mfailed\x1b[0m"); got != tt.colour {
				t.Errorf("colour %t, want %t: %q", got, tt.colour, s.received())
			}
			if !tt.colour && strings.Contains(s.received(), "\x1b") {
				t.Errorf("escape sequences: %q", s.received())
			}
		})
	}
}

func TestADumbTerminalGetsPlainLines(t *testing.T) {
	p := newFixture(t, newYear)
	cmd := command(t, p.Addr(), "watch", "hello")
	cmd.Env = append(cmd.Env, "TERM=dumb")
	s := open(t, cmd, 80)
	s.end()
	if got := s.received(); strings.Contains(got, "\x1b") || !strings.Contains(got, "fetching    1.0 MB of 4.2 MB\r\n") {
		t.Errorf("received %q", got)
	}
}

func TestFollowingOutlivesABrokenConnectionAndSaysSoOnce(t *testing.T) {
	for _, args := range []string{"watch", "logs -f"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			p := baitest.Start(t)
			id := p.Add(&baiv1.Run{})
			happen := func(i int) {
				p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING, Message: fmt.Sprint("event ", i)})
				p.Log(id, &baiv1.LogLine{Text: fmt.Sprint("event ", i)})
			}
			network := baitest.Break(t, p.Addr(), 0, 0)
			s := open(t, command(t, network.Addr(), append(strings.Fields(args), id)...), 80)
			happen(1)
			s.await("event 1\r\n")
			network.Down()
			s.await("baictl: lost the platform at " + network.Addr() + ", trying to reach it again: ")
			calls := p.Calls("WatchRun") + p.Calls("StreamLogs")
			network.Up()
			s.await("baictl: reached the platform again\r\n") // though nothing happens
			happen(2)
			s.await("event 2\r\n")
			p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
			p.SetCompleteness(id, &baiv1.Completeness{Complete: true})
			if code := s.end(); code != 0 {
				t.Errorf("exit %d", code)
			}
			for _, once := range []string{"lost the platform", "reached the platform", "event 1\r\n", "event 2\r\n"} {
				if n := strings.Count(s.received(), once); n != 1 {
					t.Errorf("%q came %d times:\n%s", once, n, s.screen())
				}
			}
			if again := p.Calls("WatchRun") + p.Calls("StreamLogs") - calls; again != 1 {
				t.Errorf("the stream was opened %d times after the break", again)
			}
		})
	}
}

func TestARunIsFollowedThroughManyBreaks(t *testing.T) {
	const changes = 3000
	p := baitest.Start(t)
	p.OnSubmit(func(id string) {
		for i := range changes {
			p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING, Message: fmt.Sprint("event ", i+1)})
		}
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
		p.SetCompleteness(id, &baiv1.Completeness{Complete: true})
	})
	network := baitest.Break(t, p.Addr(), 30, 2000)
	got := runPiped(t, network.Addr(), "run", "good.toml")
	if got.code != 0 {
		t.Fatal(got)
	}
	lines := strings.Split(got.out, "\n")
	for i := range changes {
		if want := fmt.Sprint("event ", i+1); !strings.HasSuffix(lines[i+1], want) {
			t.Fatalf("line %d: %q, want %q", i+1, lines[i+1], want)
		}
	}
	if network.Cuts() < 25 {
		t.Errorf("%d cuts, want 25 at least", network.Cuts())
	}
}

func TestAllLinesOfALongLogComeInOrder(t *testing.T) {
	const n = 100000
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	var all []*baiv1.LogLine
	for i := range n {
		all = append(all, &baiv1.LogLine{Text: fmt.Sprint(i), Stderr: i%2 == 1})
	}
	p.Log(id, all...)
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true})
	for _, args := range []string{"logs", "logs -f"} {
		got := runPiped(t, p.Addr(), append(strings.Fields(args), id)...)
		lines := strings.Split(got.out, "\n")
		if got.code != 0 || len(lines) != n+1 {
			t.Fatalf("%s: exit %d, %d lines", args, got.code, len(lines)-1)
		}
		for i := range n {
			if lines[i] != fmt.Sprint(i) {
				t.Fatalf("%s: line %d is %q", args, i, lines[i])
			}
		}
	}
}

func TestTheEnvironmentNamesPlatformAndOwner(t *testing.T) {
	p := newFixture(t, newYear)
	cmd := command(t, "127.0.0.1:1", "get", "secret", "-o", "name", "--server", p.Addr())
	cmd.Env = append(cmd.Env, "BAI_OWNER=bob")
	if got := finish(t, cmd); got.code != 0 {
		t.Errorf("--server over BAI_SERVER, BAI_OWNER: %s", got)
	}
	cmd = command(t, p.Addr(), "get", "hello", "-o", "name", "--owner", "ann")
	cmd.Env = append(cmd.Env, "BAI_OWNER=bob")
	if got := finish(t, cmd); got.code != 0 {
		t.Errorf("--owner over BAI_OWNER: %s", got)
	}
	cmd = command(t, p.Addr(), "submit", "good.toml")
	cmd.Env = append(cmd.Env, "BAI_OWNER=")
	if got := finish(t, cmd); got.code != 0 || p.Submits()[0].GetOwner() == "" {
		t.Errorf("the owner is the user: %s", got)
	}
}

func TestCompletionScriptsAreForFourShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := runPiped(t, "127.0.0.1:1", "completion", shell); got.code != 0 || !strings.Contains(got.out, "baictl") {
			t.Errorf("%s: exit %d", shell, got.code)
		}
	}
}
