package main_test

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestSubmitThatWaitsExitsWithTheFirstOutcomeThatIsNotASuccess(t *testing.T) {
	outcomes := map[string]*baiv1.Change{
		"good":     {Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
		"bad":      {Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER, Reason: "NonZeroExit"},
		"late":     {Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_TIMEOUT, Reason: "DeadlineExceeded"},
		"platform": {Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_PLATFORM, Reason: "Poison"},
		"canceled": {Outcome: baiv1.Outcome_OUTCOME_CANCELED},
	}
	for name, tt := range map[string]struct {
		code int
		says string
	}{
		"good": {0, "succeeded after"}, "bad": {1, "failed: NonZeroExit (user)"}, "late": {4, "DeadlineExceeded (timeout)"}, "platform": {3, "Poison"}, "canceled": {5, "was canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := baitest.Start(t)
			endSubmitted(p, outcomes[name], nil)
			expect(t, runPiped(t, p.Addr(), "submit", "good.toml", "good.toml", "--wait"), tt.code, tt.says)
		})
	}
}

func TestSubmitThatWaitsGivesUpAndTheRunGoesOn(t *testing.T) {
	p := baitest.Start(t)
	p.OnSubmit(func(id string) { p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING}) })
	got := runPiped(t, p.Addr(), "submit", "good.toml", "--wait", "--timeout", "5s")
	expect(t, got, 4, "timed out after 5s: run 01kdyt1q880000000000000001 goes on (come back: baictl watch 01kdyt1q880000000000000001")
	if got.out != "01kdyt1q880000000000000001\n" {
		t.Errorf("the ID is not printed before the end: %s", got)
	}
	expect(t, runPiped(t, p.Addr(), "submit", "good.toml", "good.toml", "--wait", "--timeout", "5s"), 4, "and others go on (see baictl list)")
	expect(t, runPiped(t, p.Addr(), "submit", "bad-not-there.toml", "good.toml", "--wait", "--timeout", "5s"), 2, "goes on")
}

// syncBuffer holds the output of a running program.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *syncBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all of it.
func (l *syncBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *syncBuffer) count() int { return strings.Count(l.String(), "\n") }

func TestAListThatIsWatchedTellsEachChangeInAPipe(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: "训练", Owner: "ann", CreateTime: timestamppb.Now()})
	cmd := command(t, p.Addr(), "list", "--watch")
	out := &syncBuffer{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first line", func() bool { return out.count() == 2 })
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
	until(t, "the change", func() bool { return out.count() == 3 })
	other := p.Add(&baiv1.Run{Owner: "ann", CreateTime: timestamppb.Now()})
	until(t, "the new run", func() bool { return out.count() == 4 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, cmd); code != 0 {
		t.Errorf("exit %d, want 0: it has no other end than the user's", code)
	}
	all := strings.Split(out.String(), "\n")
	for i, want := range []string{"ID   ", id + "  训练                      submitted   ", id + "  训练                      running     ", other + "  -                         submitted   "} {
		if !strings.HasPrefix(all[i], want) {
			t.Errorf("line %d is %q, want %q", i+1, all[i], want)
		}
	}
	expect(t, runPiped(t, p.Addr(), "list", "--watch", "-o", "json", "--timeout", "300ms"), 4, "timed out")
}

func TestIncidentsThatAreWatchedAreShownAtEachChange(t *testing.T) {
	p := baitest.Start(t)
	addAlarms(p)
	cmd := command(t, p.Addr(), "alarms", "--watch", "--task", "checksums", "--metric", "rate")
	out := &syncBuffer{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the incident that is open", func() bool { return out.count() == 1 })
	p.ChangeIncident(rateIncident().GetId(), func(i *baiv1.Incident) {
		i.State, i.UpdateTime = "resolved", daysAgo(0)
		i.Transitions = append(i.Transitions, &baiv1.IncidentTransition{State: "resolved", Time: daysAgo(0)})
	})
	until(t, "the change", func() bool { return out.count() == 2 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, cmd); code != 0 {
		t.Errorf("exit %d, want 0: it has no other end than the user's", code)
	}
	lines := strings.Split(out.String(), "\n")
	for n, want := range []string{"  7rate2c3  firing        rate of checksums fell", "  7rate2c3  resolved      rate of checksums fell"} {
		if !strings.Contains(lines[n], want) {
			t.Errorf("line %d is %q, want %q in it", n+1, lines[n], want)
		}
	}
	expect(t, runPiped(t, p.Addr(), "alarms", "--watch", "-o", "jsonl", "--timeout", "300ms"), 4, "timed out")
}

func TestAListThatIsWatchedIsKeptCurrentOnATerminal(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: strings.Repeat("训练", 30), Owner: "ann", CreateTime: timestamppb.Now()})
	s := open(t, command(t, p.Addr(), "list", "-w"), 80)
	s.await("submitted")
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
	s.await("running")
	s.press("\x03")
	if code := s.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if !strings.Contains(s.received(), "\x1b[2A\r\x1b[J") {
		t.Errorf("the list is not shown in place of the one before it: %q", s.received())
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(s.received(), "\x1b[36mrunning\x1b[0m", "running"), "\r\n") {
		if _, text, ok := strings.Cut(line, "\x1b[J"); ok {
			line = text
		}
		if printer.Width(line) > 80 {
			t.Errorf("%d cells: %q", printer.Width(line), line)
		}
	}
}

// wantWrapped checks that a text has lines of a page's width, and says a message so
// many times with all its words.
func wantWrapped(t *testing.T, where, text, message string, times int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if printer.Width(strings.TrimSuffix(line, "\n")) > printer.Page {
			t.Errorf("%s: %d cells: %s", where, printer.Width(line), line)
		}
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if n := strings.Count(words(text), words(message)); n != times {
		t.Errorf("%s says it %d times, want %d, between words:\n%s", where, n, times, text)
	}
}

func TestWhyAndWatchWrapBetweenWordsAtTheTerminalsWidthAndAtAPagesElsewhere(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: "训练"})
	message := strings.Repeat("0/5 nodes are available: 3 没有足够的 GPU. ", 5)
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_PENDING, Reason: "Unschedulable", Message: message})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_INFRA, Reason: "Unschedulable", Message: message})
	for verb, times := range map[string]int{"why": 3, "watch": 3} {
		s := open(t, command(t, p.Addr(), verb, id), 80)
		s.end()
		wantWrapped(t, verb+" on a terminal", s.screen(), message, times)
		if verb == "watch" { // whose last words are an error's, which go elsewhere
			times--
		}
		wantWrapped(t, verb+" in a pipe", runPiped(t, p.Addr(), verb, id).out, message, times)
	}
	if got := runPiped(t, p.Addr(), "why", id, "-o", "wide"); !strings.Contains(got.out, strings.TrimSpace(message)) {
		t.Errorf("lines are broken with -o wide: %s", got)
	}
}

func TestCompletionIsSilentAndQuickWhereNothingCanBeKnown(t *testing.T) {
	p := baitest.Start(t)
	dead := baitest.Break(t, p.Addr(), 0, 0)
	dead.Down()
	for _, args := range []string{"get x", "watch ", "artifacts get x ", "submit stored:", "descriptors get ", "diff good.toml "} {
		begin := time.Now()
		got := runPiped(t, dead.Addr(), append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if got.code != 0 || strings.Contains(got.err, "cannot be reached") || !strings.HasPrefix(got.out, ":") {
			t.Errorf("%q: %s", args, got)
		}
		if took := time.Since(begin); took > time.Minute { // 1 s, on a machine that has more to do
			t.Errorf("%q: took %s", args, took)
		}
	}
}
