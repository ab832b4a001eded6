package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func podAt(attempt, index int, change func(*store.PodEnvironment)) store.PodEnvironment {
	p := store.PodEnvironment{
		Origin: store.Origin{Run: "r", Attempt: attempt, Stream: event.Stream{Role: "worker", Index: index, Pod: fmt.Sprint("p", index), Container: "benchmark", Kind: event.StreamOutput}},
		Environment: event.Environment{Machine: event.Machine{
			Node: "n1", Kernel: "6.8.0-45-generic", Architecture: "amd64", OS: "Debian", CPUModel: "EPYC", CPUs: 96, CPUsAllowed: 8, MaxMHz: 3700,
			Memory: 403<<30 + 5<<20, GPUs: []event.GPU{{Model: "H200", Memory: 141 << 30, UUID: "GPU-1"}}, GPUDriver: "550", CUDA: "12.4",
		}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestWhatDecidesWhetherNumbersCompare(t *testing.T) {
	base := []store.PodEnvironment{podAt(1, 0, nil), podAt(1, 1, nil)}
	want := store.Fingerprint("image", base)
	for name, tt := range map[string]struct {
		change func(*store.PodEnvironment)
		same   bool
	}{
		"another node":                    {func(p *store.PodEnvironment) { p.Machine.Node = "n2" }, true},
		"another pod of the same role":    {func(p *store.PodEnvironment) { p.Origin.Pod, p.Origin.Index = "x", 7 }, true},
		"another patch of the kernel":     {func(p *store.PodEnvironment) { p.Machine.Kernel = "6.8.12" }, true},
		"another kernel":                  {func(p *store.PodEnvironment) { p.Machine.Kernel = "6.9.0" }, false},
		"some memory more":                {func(p *store.PodEnvironment) { p.Machine.Memory += 100 << 20 }, true},
		"memory more":                     {func(p *store.PodEnvironment) { p.Machine.Memory *= 2 }, false},
		"another processor":               {func(p *store.PodEnvironment) { p.Machine.CPUModel = "Xeon" }, false},
		"fewer processors to run on":      {func(p *store.PodEnvironment) { p.Machine.CPUsAllowed-- }, false},
		"a limit":                         {func(p *store.PodEnvironment) { p.Machine.CPULimit = 2 }, false},
		"the same kind of GPU":            {func(p *store.PodEnvironment) { p.Machine.GPUs[0].UUID = "GPU-2" }, true},
		"one GPU more":                    {func(p *store.PodEnvironment) { p.Machine.GPUs = append(p.Machine.GPUs, event.GPU{Model: "H200"}) }, false},
		"what only programs say":          {func(p *store.PodEnvironment) { p.Machine.CUDA, p.Machine.GPUs[0].Memory = "", 0 }, true},
		"another driver":                  {func(p *store.PodEnvironment) { p.Machine.GPUDriver = "560" }, false},
		"tools, and the platform's":       {func(p *store.PodEnvironment) { p.Tools, p.Platform = map[string]string{"gcc": "1"}, "v2" }, true},
		"another role":                    {func(p *store.PodEnvironment) { p.Origin.Role = "launcher" }, false},
		"another governor of the clock":   {func(p *store.PodEnvironment) { p.Machine.Governor = "powersave" }, false},
		"a digest of the image":           {func(p *store.PodEnvironment) { p.Image = "sha256:1" }, false},
		"no image at all":                 {func(p *store.PodEnvironment) { p.Image = event.NoImage }, true},
		"a clock that says another speed": {func(p *store.PodEnvironment) { p.Machine.MaxMHz = 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := store.Fingerprint("image", []store.PodEnvironment{podAt(1, 0, tt.change), podAt(1, 1, nil)})
			if (got == want) != tt.same {
				t.Errorf("%s and %s, want the same: %t", want, got, tt.same)
			}
		})
	}
	if store.Fingerprint("other", base) == want || store.Fingerprint("image", base[:1]) == want || store.Fingerprint("image", nil) != "" {
		t.Error("another image or number of pods, or nothing, has the same fingerprint")
	}
	if got := store.Fingerprint("image", []store.PodEnvironment{base[1], base[0]}); got != want {
		t.Error("it depends on the order")
	}
}

func TestWhatPodsSayIsKeptInOneOrderAndTheFinalWordStays(t *testing.T) {
	first := podAt(1, 0, nil)
	final := podAt(1, 0, func(p *store.PodEnvironment) { p.Final, p.Tools = true, map[string]string{"gcc": "12"} })
	var a, b store.RunEnvironment
	for _, p := range []store.PodEnvironment{podAt(2, 0, nil), podAt(1, 1, nil), first, final, first, final} {
		a, _ = a.With(p)
	}
	for _, p := range []store.PodEnvironment{final, podAt(1, 1, nil), podAt(2, 0, nil)} {
		b, _ = b.With(p)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, changed := a.With(final); changed {
		t.Error("what is there is new")
	}
	if pods := a.Attempt(1); len(pods) != 2 || pods[0].Tools["gcc"] != "12" || pods[0].Origin.Kind != "" {
		t.Errorf("of attempt 1: %+v", pods)
	}
}
