package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// withEngine returns a planner for this machine with an engine gpu, a cluster that has no map of zones.
func withEngine() plan.Planner {
	p, gpu := plan.New(plan.EngineLocal, transpile.Settings{}, true), plan.New(plan.EngineKubernetes, transpile.Settings{Scope: "far", Placements: []string{"spread"}}, true)
	gpu.Engine = "gpu"
	p.Named = map[string]plan.Planner{"gpu": gpu}
	return p
}

func onEngine(engine, hardware string) []byte {
	return []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\nexecution_engine = \"" + engine + "\"\n[hardware]\ncpus = 1\n" + hardware +
		"\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"true\"\n")
}

func TestADescriptorIsHeldToTheClusterOfItsEngine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engine, hardware string
		want             string // of the first error; empty for none
	}{
		"what this machine does not read":         {"default", `placement = "exclusive"`, ""},
		"what the other cluster does not allow":   {"gpu", `placement = "exclusive"`, "hardware.placement"},
		"what the other cluster allows":           {"gpu", `placement = "spread"`, ""},
		"an engine that the platform has not got": {"cpu", "", `this platform has no engine "cpu" (use one of default, local, gpu, or leave it out)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := withEngine().Parser().In("vision").Parse("a.toml", onEngine(tt.engine, tt.hardware))
			got := ""
			if errs := faults.Errors(); len(errs) > 0 {
				got = errs[0].String()
			}
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheObjectsOfARunAreThoseForItsEngine(t *testing.T) {
	t.Parallel()
	p := withEngine()
	for engine, want := range map[string]string{"default": "default", "local": "default", "gpu": "far"} {
		text := onEngine(engine, "")
		d, faults := p.Parser().Parse("a.toml", text)
		if d == nil {
			t.Fatal(faults)
		}
		w, _, err := p.Preview(t.Context(), d, text, false)
		if err != nil || w.Scope != want {
			t.Errorf("%s: namespace %q, %v; want %q", engine, w.Scope, err, want)
		}
		if yaml, err := p.Render(d, text, false); err != nil || !strings.Contains(string(yaml), "namespace: "+want) {
			t.Errorf("%s: rendered in another namespace than %s: %v", engine, want, err)
		}
		if key := p.EngineOf(d); (key == "gpu") != (engine == "gpu") || p.On(key).Local() == (engine == "gpu") {
			t.Errorf("%s: key %q", engine, key)
		}
	}
}

func TestAPlannerWithoutAnEngineThatWasTakenOutRefusesItsRuns(t *testing.T) {
	t.Parallel()
	with := withEngine()
	text := onEngine("gpu", "")
	d, faults := with.Parser().Parse("a.toml", text)
	if d == nil {
		t.Fatal(faults)
	}
	with.Named = nil
	_, _, err := with.Preview(t.Context(), d, text, false)
	if why, ok := errors.AsType[*refusal.Error](err); !ok || why.Reason != event.EngineUnavailable {
		t.Errorf("%v", err)
	}
}

func TestAnEngineThatIsAProgramIsGivenCustomParamsWhole(t *testing.T) {
	t.Parallel()
	p, far := withEngine(), plan.New(plan.EngineExec, transpile.Settings{}, true)
	far.Engine = "far"
	p.Named["far"] = far
	table := "\n[custom_params]\nregion = \"eu\"\n[custom_params.hyper_params]\ndepth = 3\n"
	for engine, want := range map[string]string{"far": `{"region":"eu","hyper_params":{"depth":3}}`, "gpu": ""} {
		d, faults := p.Parser().Parse("a.toml", append(onEngine(engine, ""), table...))
		if d == nil || (len(faults.Warnings()) == 0) != (engine == "far") {
			t.Fatalf("%s: %v", engine, faults)
		}
		run := event.Fetched{Header: event.NewHeader("e", "r1", "vision", "ann", time.Unix(0, 0)), Data: []event.Data{}}
		w, err := p.Objects(transpile.Input{Run: run, Descriptor: d})
		if err != nil {
			t.Fatal(err)
		}
		job := w.Objects[len(w.Objects)-1]
		if got := job.GetAnnotations()[cluster.AnnotationCustomParams]; got != want {
			t.Errorf("%s is given %s, want %s", engine, got, want)
		}
	}
}
