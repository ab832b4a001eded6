package bai_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestWhatAnOlderPlatformWouldNotSeeIsNotSent(t *testing.T) {
	override := []*baiv1.Override{{Path: "hardware.gpus", Value: "1"}}
	for name, call := range map[string]func(*bai.Client) error{
		"overrides": func(c *bai.Client) error {
			_, err := c.Submit(t.Context(), bai.Submission{Overrides: override})
			return err
		},
		"an origin": func(c *bai.Client) error {
			_, err := c.Submit(t.Context(), bai.Submission{Origin: &baiv1.Origination{Uri: "x"}})
			return err
		},
		"a run that is repeated": func(c *bai.Client) error {
			_, err := c.Submit(t.Context(), bai.Submission{RerunOf: "x"})
			return err
		},
		"code": func(c *bai.Client) error {
			_, err := c.Submit(t.Context(), bai.Submission{Script: "x"})
			return err
		},
		"code that is sent": func(c *bai.Client) error {
			_, err := c.Send(t.Context(), codeOf("hello"))
			return err
		},
		"objects with code": func(c *bai.Client) error {
			_, err := c.Render(t.Context(), bai.Draft{WithScript: true})
			return err
		},
		"a text":               func(c *bai.Client) error { return drain(c.List(t.Context(), bai.Filter{Text: "x"})) },
		"an order":             func(c *bai.Client) error { return drain(c.List(t.Context(), bai.Filter{Oldest: true})) },
		"lines since a time":   func(c *bai.Client) error { return drain(c.Logs(t.Context(), "x", bai.LogOptions{Since: time.Now()})) },
		"a search for lines":   func(c *bai.Client) error { return drain(c.Logs(t.Context(), "x", bai.LogOptions{Search: "x"})) },
		"samples of many runs": func(c *bai.Client) error { return drain(c.Samples(t.Context(), bai.Query{})) },
		"samples before a time": func(c *bai.Client) error {
			return drain(c.Samples(t.Context(), bai.Query{Run: "x", Until: time.Now()}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := baitest.StartOld(t)
			err := call(dial(t, p.Addr(), fastSettings()))
			if e, ok := errors.AsType[*bai.UnsupportedError](err); !ok || !strings.Contains(e.Message, "is older than this client: it does not understand") {
				t.Errorf("%v, want an UnsupportedError that says so", err)
			}
			if n := p.Calls("SubmitRun") + p.Calls("ListRuns") + p.Calls("StreamLogs") + p.Calls("QueryMetrics"); n != 0 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// drain reads all to its end and returns the error.
func drain[T any](all func(func(T, error) bool)) error {
	var last error
	for _, err := range all {
		last = err
	}
	return last
}

func TestAPlatformThatDoesNotSayWhatItUnderstandsIsOfTheFirstRevision(t *testing.T) {
	p := baitest.Start(t)
	p.Fail("GetVersion", baitest.Status(codes.Unimplemented, "unknown method GetVersion for service bai.v1.RunService"))
	c := dial(t, p.Addr(), fastSettings())
	submission := bai.Submission{Descriptor: []byte("x"), RerunOf: "r0"}
	if _, err := c.Submit(t.Context(), submission); err == nil {
		t.Error("it was sent")
	}
	// The platform was updated meanwhile: the client asks an old platform again, but not
	// a new one.
	for range 3 {
		if _, err := c.Submit(t.Context(), submission); err != nil {
			t.Error(err)
		}
	}
	if n := p.Calls("GetVersion"); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

func TestWhatIsOldIsSentWithoutAskingWhatThePlatformUnderstands(t *testing.T) {
	p := baitest.StartOld(t)
	c := dial(t, p.Addr(), fastSettings())
	if _, err := c.Submit(t.Context(), bai.Submission{Descriptor: []byte("x")}); err != nil || p.Calls("GetVersion") != 0 {
		t.Errorf("%v, asked %d times", err, p.Calls("GetVersion"))
	}
}

func TestAServiceThatIsNotThereIsSaidInWords(t *testing.T) {
	p := baitest.StartOld(t)
	_, _, err := dial(t, p.Addr(), fastSettings()).Fetch(t.Context(), "", "stored:x")
	if e, ok := errors.AsType[*bai.UnsupportedError](err); !ok || e.Message != "the platform at "+p.Addr()+" is older than this client: it has no DescriptorService" {
		t.Errorf("%v", err)
	}
}
