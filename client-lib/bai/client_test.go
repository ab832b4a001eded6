package bai_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fastSettings makes a test's client lose no time.
func fastSettings() bai.Settings { return bai.Settings{Owner: "ann", Pause: time.Millisecond} }

func dial(t *testing.T, target string, s bai.Settings) *bai.Client {
	t.Helper()
	c, err := s.Dial(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func collect[T any](t *testing.T, all iter.Seq2[T, error]) []T {
	t.Helper()
	var got []T
	for one, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, one)
	}
	return got
}

// deadAddr is an address where nobody listens: a port that the kernel gives to nobody by itself.
const deadAddr = "127.0.0.1:1"

func TestAnAddressThatCannotBeOneIsRefusedAtOnce(t *testing.T) {
	for _, target := range []string{"", "localhost", "http://localhost:7070", "localhost:", "a:b:c"} {
		if _, err := bai.Dial(target); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
			t.Errorf("Dial(%q): %v, want an error that says HOST:PORT", target, err)
		}
	}
	for _, target := range []string{"localhost:7070", "[::1]:7070", ":7070", "unix:/tmp/x", "dns:///host:7070"} {
		c, err := bai.Dial(target)
		if err != nil {
			t.Errorf("Dial(%q): %v", target, err)
			continue
		}
		_ = c.Close()
	}
}

func TestErrorsCanBeToldApart(t *testing.T) {
	fault := &baiv1.Fault{File: "f.toml", Line: 3, Column: 1, Path: "info.x", Code: "BAI0010", Message: "unknown key"}
	for name, tt := range map[string]struct {
		sent error
		want error
	}{
		"not found":     {baitest.Status(codes.NotFound, "no such run"), &bai.NotFoundError{Message: "no such run"}},
		"invalid":       {baitest.Status(codes.InvalidArgument, "1 fault", fault), &bai.InvalidError{Message: "1 fault", Faults: []*baiv1.Fault{fault}}},
		"exists":        {baitest.Status(codes.AlreadyExists, "taken", &baiv1.RunFailure{RunId: "r", Reason: "NameTaken"}), &bai.ExistsError{RunID: "r", Reason: "NameTaken", Message: "taken"}},
		"unsupported":   {baitest.Status(codes.Unimplemented, "no sets here"), &bai.UnsupportedError{Message: "no sets here"}},
		"server failed": {baitest.Status(codes.Internal, "disk full"), &bai.ServerError{Code: codes.Internal, Message: "disk full"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := baitest.Start(t)
			p.Fail("GetRun", tt.sent)
			_, err := dial(t, p.Addr(), fastSettings()).Get(testContext(t), "x")
			if diff := cmp.Diff(tt.want, errors.Unwrap(err), protocmp.Transform()); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if n := p.Calls("GetRun"); n != 1 {
				t.Errorf("called %d times, want once: repetition does not mend it", n)
			}
		})
	}
}

func TestACallIsRepeatedWhileThePlatformIsUnavailable(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	away := baitest.Status(codes.Unavailable, "starting")
	p.Fail("GetRun", away, away, away)
	var lost, found int
	s := fastSettings()
	s.Lost, s.Found = func(error) { lost++ }, func() { found++ }

	run, err := dial(t, p.Addr(), s).Get(testContext(t), id)
	if err != nil || run.GetId() != id {
		t.Errorf("Get: %v, %v", run.GetId(), err)
	}
	if lost != 3 || found != 1 {
		t.Errorf("told of %d losses and %d recoveries, want 3 and 1", lost, found)
	}
}

func TestNothingIsLostWhereTheTimeIsOverBeforeTheNextTry(t *testing.T) {
	p := baitest.Start(t)
	p.Fail("GetRun", baitest.Status(codes.Unavailable, "stream terminated by RST_STREAM with error code: CANCEL"))
	s := fastSettings()
	s.Pause, s.RetryTimeout = time.Hour, 24*time.Hour
	s.Lost = func(err error) { t.Errorf("told of a loss: %v", err) }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	if _, err := dial(t, p.Addr(), s).Get(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get: %v, want that the time is over", err)
	}
}

func TestPatienceEnds(t *testing.T) {
	s := fastSettings()
	s.RetryTimeout = 50 * time.Millisecond
	addr := deadAddr
	c := dial(t, addr, s)

	_, err := c.Get(testContext(t), "x")
	want := &bai.UnavailableError{Target: addr, Away: true, Message: "connection refused"}
	if diff := cmp.Diff(error(want), errors.Unwrap(err)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, err := range c.Watch(testContext(t), "x", 0) {
		if _, ok := errors.AsType[*bai.UnavailableError](err); !ok {
			t.Errorf("Watch of a platform that was never reached: %v, want an UnavailableError", err)
		}
	}
	for _, err := range c.Metrics(testContext(t), "x") {
		if _, ok := errors.AsType[*bai.UnavailableError](err); !ok {
			t.Errorf("Metrics: %v, want an UnavailableError", err)
		}
	}
}

func TestWhyThePlatformCannotBeReached(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // it never accepts: the kernel does
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	web2 := httptest.NewUnstartedServer(http.NotFoundHandler())
	web2.Config.Protocols = new(http.Protocols)
	web2.Config.Protocols.SetUnencryptedHTTP2(true)
	web2.Start()
	defer web2.Close()
	for name, tt := range map[string]struct{ addr, want string }{
		"nobody listens":              {deadAddr, "connection refused"},
		"nobody answers":              {silent.Addr().String(), "it takes connections and does not answer"},
		"a web server":                {web.Listener.Addr().String(), "what answers there is not a platform"},
		"a web server of our century": {web2.Listener.Addr().String(), "what answers there is not a platform"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fastSettings()
			s.RetryTimeout = 50 * time.Millisecond
			_, err := dial(t, tt.addr, s).Get(testContext(t), "x")
			if u, ok := errors.AsType[*bai.UnavailableError](err); !ok || !u.Away || u.Message != tt.want {
				t.Errorf("Get: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestACallWhoseContextEndsReturnsThat(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := dial(t, deadAddr, fastSettings()).Get(ctx, "x")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get: %v, want deadline exceeded", err)
	}
}

func TestASubmissionIsRepeatedUnderOneKey(t *testing.T) {
	p := baitest.Start(t)
	away := baitest.Status(codes.Unavailable, "no broker", &baiv1.RunFailure{RunId: "r1", Reason: "NotPublished"})
	p.Fail("SubmitRun", away, away)
	got, err := dial(t, p.Addr(), fastSettings()).Submit(testContext(t), bai.Submission{Descriptor: []byte("x"), Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Key == "" || got.RunID == "" || got.Repeated {
		t.Errorf("Submit: %+v", got)
	}
	if req := p.Submits()[0]; req.GetIdempotencyKey() != got.Key || req.GetOwner() != "ann" || req.GetName() != "n" {
		t.Errorf("sent %v", req)
	}
}

func TestASubmissionThatWasAnsweredButNotHeardIsOneRun(t *testing.T) {
	p := baitest.Start(t)
	network := baitest.Break(t, p.Addr(), 20, 300)
	c := dial(t, network.Addr(), fastSettings())
	var last bai.Submitted
	for i := range 10 {
		got, err := c.Submit(testContext(t), bai.Submission{Descriptor: []byte("x"), Key: fmt.Sprint("k", i)})
		if err != nil {
			t.Fatal(err)
		}
		last = got
	}
	direct := dial(t, p.Addr(), fastSettings())
	if runs := collect(t, direct.List(testContext(t), bai.Filter{})); len(runs) != 10 || last.RunID != runs[0].GetId() {
		t.Errorf("%d runs after 10 submissions and %d cuts, want 10", len(runs), network.Cuts())
	}
}

func TestAGivenUpSubmissionCarriesItsRunAndKey(t *testing.T) {
	p := baitest.Start(t)
	for range 1000 {
		p.Fail("SubmitRun", baitest.Status(codes.Unavailable, "no broker", &baiv1.RunFailure{RunId: "r1", Reason: "NotPublished"}))
	}
	s := fastSettings()
	s.RetryTimeout = 20 * time.Millisecond
	_, err := dial(t, p.Addr(), s).Submit(testContext(t), bai.Submission{Key: "k"})
	got, ok := errors.AsType[*bai.UnavailableError](err)
	want := &bai.UnavailableError{Target: p.Addr(), RunID: "r1", Key: "k", Reason: "NotPublished", Message: "no broker"}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestThePlatformIsToldWhoCalls(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	s := fastSettings()
	s.User = "Eve Müller\n"
	c := dial(t, p.Addr(), s)
	if _, err := c.Cancel(testContext(t), id); err != nil || !cmp.Equal(p.Users(), []string{"Eve%20M%C3%BCller%0A"}) {
		t.Errorf("called by %q, %v, want Eve, encoded", p.Users(), err)
	}
	collect(t, c.Metrics(testContext(t), id))
	if !cmp.Equal(p.Users(), []string{"Eve%20M%C3%BCller%0A"}) {
		t.Errorf("streamed to %q, want Eve, encoded", p.Users())
	}
}

func TestOneKeyAndAnotherDescriptorIsAnExistsError(t *testing.T) {
	c := dial(t, baitest.Start(t).Addr(), fastSettings())
	first, err := c.Submit(testContext(t), bai.Submission{Key: "k", Descriptor: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Submit(testContext(t), bai.Submission{Key: "k", Descriptor: []byte("a")}); err != nil || !again.Repeated || again.RunID != first.RunID {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	_, err = c.Submit(testContext(t), bai.Submission{Key: "k", Descriptor: []byte("b")})
	if e, ok := errors.AsType[*bai.ExistsError](err); !ok || e.RunID != first.RunID {
		t.Errorf("another descriptor: %v, want an ExistsError with run %s", err, first.RunID)
	}
}

func TestAListGoesThroughAllPagesAndFilters(t *testing.T) {
	p := baitest.Start(t)
	for i := range 25 {
		p.Add(&baiv1.Run{Name: fmt.Sprint("r", i), Owner: "ann", Labels: map[string]string{"odd": fmt.Sprint(i % 2)}})
	}
	c := dial(t, p.Addr(), fastSettings())
	if n := len(collect(t, c.List(testContext(t), bai.Filter{Page: 4}))); n != 25 {
		t.Errorf("%d runs, want 25", n)
	}
	odd := collect(t, c.List(testContext(t), bai.Filter{Page: 4, Labels: map[string]string{"odd": "1"}}))
	if len(odd) != 12 || odd[0].GetName() != "r23" {
		t.Errorf("%d odd runs from %s, want 12 from r23", len(odd), odd[0].GetName())
	}
	calls := p.Calls("ListRuns")
	for _, err := range c.List(testContext(t), bai.Filter{Page: 4}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if n := p.Calls("ListRuns") - calls; n != 1 {
		t.Errorf("%d pages were asked for to read one run, want 1", n)
	}
}
