package bai_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
)

func codeOf(content string) bai.Code {
	return bai.Code{SHA256: baitest.Digest(content), Size: int64(len(content)), Content: strings.NewReader(content)}
}

func TestCodeIsSentOnceHoweverOftenTheConnectionBreaks(t *testing.T) {
	p := baitest.Start(t)
	p.CutUploads(0, 1<<20, 300_000)
	content := strings.Repeat("0123456789", 150_000)
	c := dial(t, p.Addr(), fastSettings())
	for _, want := range []bool{false, true} {
		if there, err := c.Send(t.Context(), codeOf(content)); there != want || err != nil {
			t.Fatalf("it was there: %t, %v", there, err)
		}
	}
	if p.Scripts()[baitest.Digest(content)] != content || p.Calls("UploadScript") != 4 {
		t.Errorf("kept after %d uploads: %d bytes", p.Calls("UploadScript"), len(p.Scripts()[baitest.Digest(content)]))
	}
	got, err := c.Submit(t.Context(), bai.Submission{Descriptor: []byte("x"), File: "a.toml", Script: baitest.Digest(content)})
	if err != nil {
		t.Fatal(err)
	}
	run, err := c.Get(t.Context(), got.RunID)
	if err != nil || run.GetScript().GetSize() != int64(len(content)) {
		t.Errorf("the run has %v, %v", run.GetScript(), err)
	}
}

func TestCodeThatThePlatformDoesNotTakeIsTheUsersFault(t *testing.T) {
	p := baitest.Start(t)
	c := dial(t, p.Addr(), fastSettings())
	wrong := codeOf("hello")
	wrong.SHA256 = baitest.Digest("jello")
	for name, code := range map[string]bai.Code{"other bytes": wrong, "too much": codeOf(strings.Repeat("x", 9<<20))} {
		if _, err := c.Send(t.Context(), code); !errors.As(err, new(*bai.InvalidError)) {
			t.Errorf("%s: %v, want an InvalidError", name, err)
		}
	}
	short := codeOf("hello")
	short.Size = 6
	if _, err := c.Send(t.Context(), short); err == nil || !strings.Contains(err.Error(), "read the code") {
		t.Errorf("less than there should be: %v", err)
	}
	p.Fail("GetScript", status.Error(codes.Internal, "broken"))
	if _, err := c.Send(t.Context(), codeOf("hello")); !errors.As(err, new(*bai.ServerError)) {
		t.Errorf("a platform that fails: %v", err)
	}
	if len(p.Scripts()) > 0 {
		t.Errorf("kept %d", len(p.Scripts()))
	}
}
