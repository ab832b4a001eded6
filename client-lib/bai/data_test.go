package bai_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func sum(c string) string { return strings.Repeat(c, 64) }

func TestDataAreListedVerifiedAndEvictedWhateverBreaks(t *testing.T) {
	p := baitest.Start(t)
	for i, c := range []string{"a", "b", "c", "d", "e"} {
		p.AddData(&baiv1.StoredData{Sha256: sum(c), Size: int64(i)})
	}
	p.AddData(&baiv1.StoredData{Sha256: sum("f"), Runs: []string{"r1"}})
	p.Damage(sum("b"))
	away := status.Error(codes.Unavailable, "away")
	for _, method := range []string{"ListData", "VerifyData", "EvictData"} {
		p.Fail(method, away)
	}
	c := dial(t, p.Addr(), fastSettings())
	var got []string
	for _, d := range collect(t, c.Data(testContext(t))) {
		got = append(got, d.GetSha256()[:1])
	}
	if diff := cmp.Diff("abcdef", strings.Join(got, "")); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	var read []string
	whole, err := c.VerifyData(testContext(t), sum("e"), func(done, total int64) { read = append(read, fmt.Sprint(done, "/", total)) })
	if diff := cmp.Diff([]string{"2/4", "4/4"}, read); diff != "" || !whole || err != nil {
		t.Errorf("verified %t, %v: %s", whole, err, diff)
	}
	if whole, err := c.VerifyData(testContext(t), sum("b"), nil); whole || err != nil {
		t.Errorf("what is damaged is whole, or %v", err)
	}
	if _, err := c.VerifyData(testContext(t), sum("b"), nil); !errors.As(err, new(*bai.NotFoundError)) {
		t.Errorf("what is forgotten is there: %v", err)
	}
	for digest, want := range map[string]bool{sum("a"): true, sum("9"): false} {
		if stored, err := c.EvictData(testContext(t), digest); stored != want || err != nil {
			t.Errorf("evicted %t, %v", stored, err)
		}
	}
	if _, err := c.EvictData(testContext(t), sum("f")); !errors.As(err, new(*bai.InvalidError)) {
		t.Errorf("what is needed was evicted: %v", err)
	}
}

func TestAPrefetchIsWaitedFor(t *testing.T) {
	p := baitest.Start(t)
	p.AddURI("https://example.org/a", "meow")
	p.Fail("PrefetchData", status.Error(codes.Unavailable, "away"))
	p.Fail("GetPrefetch", status.Error(codes.Unavailable, "away"))
	c := dial(t, p.Addr(), fastSettings())
	for src, want := range map[string]string{"https://example.org/a": "STATE_FETCHED " + baitest.Digest("meow"), "https://example.org/b": "STATE_FAILED "} {
		name, err := c.Prefetch(testContext(t), bai.Wanted{Src: src})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.WaitPrefetch(testContext(t), name)
		if err != nil || fmt.Sprint(got.GetState(), " ", got.GetSha256()) != want {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
	if _, err := c.Prefetch(testContext(t), bai.Wanted{Src: "ftp://x"}); !errors.As(err, new(*bai.InvalidError)) {
		t.Errorf("prefetch: %v", err)
	}
}

func TestWhoWaitsForAPrefetchHearsWhatItWaitsForOnce(t *testing.T) {
	p := baitest.Start(t)
	p.AddURI("https://example.org/a", "meow")
	p.SetPrefetchWaits("https://example.org/a", "", "refused (try 2 of 7)", "refused (try 2 of 7)", "", "")
	var messages []string
	got, err := dial(t, p.Addr(), fastSettings()).FollowPrefetch(testContext(t), "https://example.org/a", func(why string) { messages = append(messages, why) })
	if err != nil || got.GetState() != baiv1.GetPrefetchResponse_STATE_FETCHED || !slices.Equal(messages, []string{"refused (try 2 of 7)", ""}) {
		t.Errorf("%v, %v, said %q", got, err, messages)
	}
}

func TestAnOldPlatformSaysThatItLooksAfterNoData(t *testing.T) {
	c := dial(t, baitest.StartOld(t).Addr(), fastSettings())
	for _, err := range c.Data(testContext(t)) {
		if !errors.As(err, new(*bai.UnsupportedError)) {
			t.Errorf("list: %v", err)
		}
	}
}
