package bai_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const minimal = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n"

func TestADescriptorThatIsKeptIsReadBack(t *testing.T) {
	c := dial(t, baitest.Start(t).Addr(), fastSettings())
	for i, want := range []struct {
		text     string
		version  int32
		repeated bool
	}{{minimal, 1, false}, {minimal, 1, true}, {minimal + "#\n", 2, false}} {
		got, err := c.Push(testContext(t), "", "n", bai.Draft{Text: []byte(want.text), File: "f"})
		if err != nil || got.GetVersion() != want.version || got.Repeated != want.repeated {
			t.Errorf("push %d: %v, %v", i, got, err)
		}
	}
	text, origin, err := c.Fetch(testContext(t), "", "stored:n@1")
	if err != nil || string(text) != minimal || origin.GetUri() != "stored:n@1" || origin.GetSha256() != baitest.Digest(minimal) {
		t.Errorf("fetch: %q, %v, %v", text, origin, err)
	}
	var versions []int32
	for _, d := range collect(t, c.Kept(testContext(t), "", "n")) {
		versions = append(versions, d.GetVersion())
	}
	if diff := cmp.Diff([]int32{2, 1}, versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	_, _, err = c.Fetch(testContext(t), "", "stored:n@9")
	if e, ok := errors.AsType[*bai.NotFoundError](err); !ok || e.What != "descriptor" {
		t.Errorf("a version that there is not: %v", err)
	}
}

func TestAllThatIsKeptIsListed(t *testing.T) {
	p := baitest.Start(t)
	for range 3 {
		for i := range 600 {
			p.StoreDescriptor(strings.Repeat("x", i%60+1)+string(rune('a'+i/60)), minimal)
		}
	}
	if n := len(collect(t, dial(t, p.Addr(), fastSettings()).Kept(testContext(t), "", ""))); n != 600 {
		t.Errorf("%d names, want 600", n)
	}
}

func TestADescriptorIsCheckedAndRenderedByThePlatform(t *testing.T) {
	c := dial(t, baitest.Start(t).Addr(), fastSettings())
	faults, err := c.Validate(testContext(t), bai.Draft{Text: []byte(minimal), File: "f", Overrides: []*baiv1.Override{{Path: "hardware.gpu", Value: "1"}}})
	if err != nil || len(faults) != 1 || faults[0].GetCode() != "BAI0010" {
		t.Errorf("validate: %v, %v", faults, err)
	}
	if text, err := c.Render(testContext(t), bai.Draft{Text: []byte(minimal), File: "f"}); err != nil || !strings.Contains(text, "kind: Job") {
		t.Errorf("render: %q, %v", text, err)
	}
	_, err = c.Render(testContext(t), bai.Draft{Text: []byte("x"), File: "f"})
	if e, ok := errors.AsType[*bai.InvalidError](err); !ok || len(e.Faults) == 0 {
		t.Errorf("render what is invalid: %v", err)
	}
}

func TestAnArtifactComesWholeThoughConnectionsBreak(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: "n", Owner: "ann"})
	want := strings.Repeat("0123456789", 3000)
	p.AddArtifact(id, "1/benchmark-0/x", want)
	for _, offset := range []int64{0, 12345, int64(len(want))} {
		network := baitest.Break(t, p.Addr(), cuts, 900)
		var got bytes.Buffer
		for _, piece := range collect(t, dial(t, network.Addr(), fastSettings()).Artifact(testContext(t), "n", "1/benchmark-0/x", offset)) {
			got.Write(piece)
		}
		if got.String() != want[offset:] {
			t.Errorf("from %d on: %d bytes, want %d, or others", offset, got.Len(), len(want[offset:]))
		}
	}
	files, err := dial(t, p.Addr(), fastSettings()).Artifacts(testContext(t), "n")
	if err != nil || len(files) != 1 || files[0].GetSha256() != baitest.Digest(want) {
		t.Errorf("%v, %v", files, err)
	}
	err = drain(dial(t, p.Addr(), fastSettings()).Artifact(testContext(t), "n", "none", 0))
	if e, ok := errors.AsType[*bai.NotFoundError](err); !ok || e.What != "artifact" {
		t.Errorf("an artifact that there is not: %v", err)
	}
}

func TestSamplesOfManyRunsComeOnceRunByRunThoughConnectionsBreak(t *testing.T) {
	p := baitest.Start(t)
	var want []string
	for i := range 20 {
		id := p.Add(&baiv1.Run{Labels: map[string]string{"odd": string(rune('0' + i%2))}})
		for second := range 200 {
			p.Sample(id, &baiv1.Sample{Metric: "m", Value: float64(second), Time: timestamppb.New(time.Unix(int64(second), 0))})
		}
		if i%2 == 1 {
			want = append([]string{id}, want...)
		}
	}
	network := baitest.Break(t, p.Addr(), 40, 900)
	q := bai.Query{Runs: bai.Filter{Labels: map[string]string{"odd": "1"}}, Metrics: []string{"m"}, Since: time.Unix(50, 0), Until: time.Unix(150, 0)}
	var runs []string
	values := map[string][]int{}
	for _, m := range collect(t, dial(t, network.Addr(), fastSettings()).Samples(testContext(t), q)) {
		if len(runs) == 0 || runs[len(runs)-1] != m.RunID {
			runs = append(runs, m.RunID)
		}
		values[m.RunID] = append(values[m.RunID], int(m.GetValue())+1)
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for _, id := range runs {
		if diff := cmp.Diff(numbers(150)[50:], values[id]); diff != "" {
			t.Errorf("run %s (-want +got):\n%s", id, diff)
		}
	}
}
