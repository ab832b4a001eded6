package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestReceive(t *testing.T) {
	with := func(old, replacement string) event.Fetched {
		f := fetched("r1")
		f.Descriptor = strings.Replace(f.Descriptor, old, replacement, 1)
		return f
	}
	end := event.Finished{Header: header("r1"), Outcome: event.Canceled}
	for name, tt := range map[string]struct {
		run      event.Fetched
		facts    launch.Facts
		settings executor.Settings
		want     string
	}{
		"a run whose data are there waiting for a free slot":         {run: fetched("r1"), want: "queue"},
		"a run that has ended is left alone":                         {run: fetched("r1"), facts: launch.Facts{RunFinished: true, Canceled: true}, want: "nothing"},
		"a run that was launched before is left alone":               {run: fetched("r1"), facts: launch.Facts{Plan: &launch.Plan{}, Canceled: true}, want: "nothing"},
		"a run that was ended before it was launched is ended again": {run: fetched("r1"), facts: launch.Facts{Plan: &launch.Plan{NoLaunch: true, FinalEvent: &end}}, want: "say canceled"},
		"a run with a cancel mark is never launched":                 {run: fetched("r1"), facts: launch.Facts{Canceled: true}, want: "never: canceled CanceledByUser: canceled before it was launched"},
		"a descriptor that cannot be read waits for who can": {
			run:  with(`cpus = 1`, `cpus = 1`+"\n"+`cpsu = 2`),
			want: "aside",
		},
		"unless its run was canceled": {
			run: with(`cpus = 1`, `cpus = 1`+"\n"+`cpsu = 2`), facts: launch.Facts{Canceled: true},
			want: "never: canceled CanceledByUser: canceled before it was launched",
		},
		"an engine that is not here is named with those that are": {
			run:  with(`description = "x"`, `description = "x"`+"\n"+`execution_engine = "aws.sagemaker"`),
			want: `say failed user EngineUnavailable: info.execution_engine is "aws.sagemaker", which this platform does not have: it has default, local`,
		},
		"the engine that is here may be named": {
			run: with(`description = "x"`, `description = "x"`+"\n"+`execution_engine = "kubernetes"`), settings: executor.Settings{Engine: "kubernetes"},
			want: "queue",
		},
		"a strategy that cannot be launched as it is written was not accepted by this release": {
			run:  with("cpus = 1\n[env]\ndocker_image = \"debian:12\"\n[ml]\nbenchmark_code = \"true\"", "cpus = 1\nstrategy = \"horovod\"\n[env]\ndocker_image = \"debian:12\""),
			want: "aside",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describeDecision(executor.Decide(tt.run, tt.facts, tt.settings.Planner(true)))
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := describeDecision(executor.Decide(tt.run, tt.facts, tt.settings.Planner(true))); again != got {
				t.Errorf("another time: %q", again)
			}
		})
	}
}

func describeDecision(r executor.Decision) string {
	switch {
	case r.Unreadable != nil:
		return "aside"
	case r.Enqueue != nil:
		return "queue"
	case r.PreventLaunch != nil:
		return "never: " + describeFinished(*r.PreventLaunch)
	}
	for _, ev := range r.Publish {
		if f, ok := ev.(event.Finished); ok {
			return "say " + describeFinished(f)
		}
	}
	return "nothing"
}

func describeFinished(f event.Finished) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s: %s", f.Outcome, f.Class, f.Reason, f.Message)), " ")
}

func TestSettings(t *testing.T) {
	s := executor.Settings{Engine: "docker", Slots: -1, Lease: -1, Priorities: map[string]int{"urgent": 5000}}
	want := []string{
		`executor.engine: "docker", want local or kubernetes`, "executor.slots: must not be negative", "executor.lease: must not be negative",
		`executor.priorities: "urgent", want label=value`, `executor.priorities: "urgent" has 5000, want -1000 to 1000`,
	}
	err := s.Validate()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nwant an error with %q", err, w)
		}
	}
	if err := (executor.Settings{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}
