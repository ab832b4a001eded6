package points_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/points"
)

func at(second int) time.Time { return time.Date(2026, 5, 4, 10, 0, second, 0, time.UTC) }

const descriptor = `spec_version = "0.1.0"
info = { description = "rates" }
hardware = { instance_type = "t3.small" }
ml = { benchmark_code = "echo 1" }
env = { docker_image = "img:1" }
`

// newRun returns a run of task train that was submitted at 1 s, and ran from 3 s to 12 s.
func newRun(change func(*store.Run)) store.Run {
	started, ended := at(3), at(12)
	r := store.Run{
		ID: "r", Namespace: "pets", Outcome: event.Succeeded, Created: at(1), Started: &started, Ended: &ended, Attempt: 1, Descriptor: descriptor,
		Labels: map[string]string{store.LabelTask: "train"},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func summaries(all ...store.Summary) *store.Summaries {
	return &store.Summaries{Complete: true, Summaries: all}
}

// valuesText returns values as text.
func valuesText(all []store.Summary) string {
	var texts []string
	for _, s := range all {
		text := fmt.Sprintf("%s=%g", s.Metric, float64(s.Median))
		if s.Unit != "" {
			text += s.Unit
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func TestTheValuesOfARun(t *testing.T) {
	loss := store.Summary{Metric: "loss", N: 3, Median: 7}
	for name, tt := range map[string]struct {
		change func(*store.Run)
		all    *store.Summaries
		want   string
	}{
		"those of its samples come first, then its times": {all: summaries(loss), want: "loss=7 run.duration=9s run.queued=2s"},
		"a run without samples has its times":             {want: "run.duration=9s run.queued=2s"},
		"a run that never started has none":               {change: func(r *store.Run) { r.Started = nil }, all: summaries(loss), want: "loss=7"},
		"a run of unknown submission was not queued":      {change: func(r *store.Run) { r.Created = time.Time{} }, want: "run.duration=9s"},
		"clocks that differ make no negative times": {change: func(r *store.Run) {
			early := at(0)
			r.Ended, r.Started = &early, new(at(1))
			r.Created = at(2)
		}, want: ""},
		"a metric of the benchmark takes the place of a time":        {all: summaries(store.Summary{Metric: "run.duration", Unit: "s", Median: 42}), want: "run.duration=42s run.queued=2s"},
		"a metric in another unit is beside the time":                {all: summaries(store.Summary{Metric: "run.duration", Unit: "ms", Median: 42}), want: "run.duration=42ms run.duration=9s run.queued=2s"},
		"a run that failed has those of its samples":                 {change: func(r *store.Run) { r.Outcome = event.Failed }, all: summaries(loss), want: "loss=7"},
		"a run that failed without samples has none":                 {change: func(r *store.Run) { r.Outcome = event.Failed }, want: ""},
		"a warm-up has those of its samples":                         {change: func(r *store.Run) { r.Warmup = true }, all: summaries(loss), want: "loss=7"},
		"a run that confirms an incident has the values of any run":  {change: func(r *store.Run) { r.Confirms = "i" }, all: summaries(loss), want: "loss=7 run.duration=9s run.queued=2s"},
		"a metric with the name of a time and labels is another one": {all: summaries(store.Summary{Metric: "run.queued", Unit: "s", Labels: map[string]string{"k": "v"}}), want: "run.queued=0s run.duration=9s run.queued=2s"},
	} {
		t.Run(name, func(t *testing.T) {
			got := points.Of(newRun(tt.change), points.Results{Summaries: tt.all})
			if diff := cmp.Diff(tt.want, valuesText(got.Points)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATimeHasNoSamplesAndAllStatistics(t *testing.T) {
	s := points.Values(newRun(nil), nil)[0]
	if s.N != 0 || s.Interval != nil || s.Min != 9 || s.Max != 9 || s.Mean != 9 || s.P90 != 9 || s.P95 != 9 || s.P99 != 9 || s.First != 9 || s.Last != 9 || s.SD == s.SD {
		t.Errorf("%+v", s)
	}
}

func TestValuesOfARunDoNotChangeItsSummaries(t *testing.T) {
	all := summaries(make([]store.Summary, 1, 10)...)
	points.Values(newRun(nil), all)
	if diff := cmp.Diff(store.Summary{}, all.Summaries[:2][1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTimeByWhichARunIsOrdered(t *testing.T) {
	firing := at(40)
	version := func(text string) func(*store.Run) {
		return func(r *store.Run) { r.Labels[points.LabelVersionTime] = text }
	}
	for name, tt := range map[string]struct {
		change func(*store.Run)
		want   time.Time
	}{
		"that of its submission":                 {nil, at(1)},
		"that of what it measures before that":   {version("2026-05-04T12:00:30+02:00"), at(30)},
		"that of its firing before both":         {func(r *store.Run) { r.Firing = &firing; version("2026-05-04T10:00:30Z")(r) }, firing},
		"a label that is no time is ignored":     {version("yesterday"), at(1)},
		"so is one that no store can order by":   {version("9999-01-01T00:00:00Z"), at(1)},
		"so is one before all that it can order": {version("0001-01-01T00:00:00Z"), at(1)},
	} {
		if got := points.Of(newRun(tt.change), points.Results{}).Time; !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestRunsThatAreNoPointsSayWhy(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*store.Run)
		imported bool
		want     store.Exclusion
	}{
		"a run that succeeded is one":                   {},
		"a warm-up is none":                             {change: func(r *store.Run) { r.Warmup = true }, want: store.ExcludedWarmup},
		"a run that failed is none":                     {change: func(r *store.Run) { r.Outcome = event.Failed }, want: store.ExcludedFailed},
		"a run that was canceled is none":               {change: func(r *store.Run) { r.Outcome = event.Canceled }, want: store.ExcludedCanceled},
		"a warm-up that failed is none, as a warm-up":   {change: func(r *store.Run) { r.Warmup, r.Outcome = true, event.Failed }, want: store.ExcludedWarmup},
		"a run that confirms an incident is none":       {change: func(r *store.Run) { r.Confirms = "i" }, want: store.ExcludedConfirmation},
		"a run for a comparison is none":                {change: func(r *store.Run) { r.Compares = "c" }, want: store.ExcludedConfirmation},
		"one that failed does so all the same":          {change: func(r *store.Run) { r.Confirms, r.Outcome = "i", event.Failed }, want: store.ExcludedConfirmation},
		"a label makes none of a run":                   {change: func(r *store.Run) { r.Labels["confirms"] = "i" }},
		"an import is none":                             {imported: true, want: store.ExcludedImport},
		"an import of a run that failed is one as well": {change: func(r *store.Run) { r.Outcome = event.Failed }, imported: true, want: store.ExcludedImport},
	} {
		if got := points.Of(newRun(tt.change), points.Results{Imported: tt.imported}).Excluded; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestPointsHaveWhatTheRunRanWith(t *testing.T) {
	run := newRun(func(r *store.Run) {
		r.Set, r.Cell, r.Repetition, r.Labels[points.LabelVersion] = "s", "n=1", 2, "v1"
		r.Data = []event.Data{{Source: "https://x/b", Path: "/b", SHA256: "bb"}, {Source: "https://x/a", Path: "/a", SHA256: "aa"}, {Source: "script:cc", SHA256: "cc"}}
		r.Images = map[string]string{"p": "sha256:2", "q": "sha256:1", "other": "sha256:3", "bare": event.NoImage}
	})
	var pods []store.PodEnvironment
	for _, pod := range []string{"p", "q", "bare"} {
		pods = append(pods, store.PodEnvironment{Origin: storetest.NewOrigin("r", pod), Environment: event.Environment{
			Platform: "v9", Machine: event.Machine{Node: "node-" + pod, CPUModel: "EPYC", CPUs: 8, Memory: 64 << 30, Kernel: "6.8.0", GPUs: []event.GPU{{Model: "H200"}, {Model: "H200"}}},
		}})
	}
	got := points.Of(run, points.Results{Summaries: &store.Summaries{}, Revision: 4, Environment: pods})
	want := store.PointRun{
		Run: "r", Namespace: "pets", Task: "train", Set: "s", Cell: "n=1", Ordinal: 2, Time: at(1), Version: "v1", Image: "img:1", Images: []string{"sha256:1", "sha256:2"},
		Descriptor: got.Descriptor, Code: "cc", Data: got.Data, Platform: "v9",
		Machine: store.MachineFingerprint(pods), Hardware: "EPYC, 8 CPUs, 64 GiB, H200, kernel 6.8.0", Nodes: []string{"node-bare", "node-p", "node-q"},
	}
	if diff := cmp.Diff(want, got.PointRun); diff != "" || got.Revision != 4 || len(got.Descriptor) != 64 || len(got.Data) != 64 {
		t.Errorf("revision %d, descriptor %s, data %s (-want +got):\n%s", got.Revision, got.Descriptor, got.Data, diff)
	}
	run.Data[0], run.Data[1] = run.Data[1], run.Data[0]
	if again := points.Of(run, points.Results{}); again.Data != got.Data {
		t.Error("the order of data sets makes another digest")
	}
	run.Data[0].SHA256 = "dd"
	if again := points.Of(run, points.Results{}); again.Data == got.Data {
		t.Error("other data make the same digest")
	}
}

func TestARunOfWhichLittleIsKnownHasPoints(t *testing.T) {
	got := points.Of(store.Run{ID: "r", Outcome: event.Succeeded, Descriptor: "no = descriptor ="}, points.Results{})
	want := store.PointRun{Run: "r", Complete: true, Descriptor: got.Descriptor}
	if diff := cmp.Diff(want, got.PointRun); diff != "" || len(got.Points) > 0 {
		t.Errorf("%v (-want +got):\n%s", got.Points, diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRunsThatCount(t *testing.T) {
	for name, tt := range map[string]struct {
		run  store.Run
		want bool
	}{
		"a repetition that succeeded counts":    {store.Run{Outcome: event.Succeeded}, true},
		"a warm-up does not count":              {store.Run{Outcome: event.Succeeded, Lineage: event.Lineage{Warmup: true}}, false},
		"a failed repetition does not count":    {store.Run{Outcome: event.Failed}, false},
		"a canceled repetition does not count":  {store.Run{Outcome: event.Canceled}, false},
		"a repetition that runs does not count": {store.Run{Phase: event.PhaseRunning}, false},
	} {
		if got := points.Counts(tt.run); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTheInstanceTypeOfARunIsThatOfItsMachinesElseThatOfItsDescriptor(t *testing.T) {
	use := func(types ...string) (all []event.MachineUse) {
		for _, name := range types {
			all = append(all, event.MachineUse{InstanceType: name})
		}
		return all
	}
	for want, machines := range map[string]map[int][]event.MachineUse{
		"t3.small": nil, "a1, p3": {1: use("p3", "a1", "p3")}, "p3": {1: use("", "p3")},
	} {
		if got := points.InstanceType(newRun(func(r *store.Run) { r.Machines = machines })); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := points.InstanceType(newRun(func(r *store.Run) { r.Descriptor = "?" })); got != "" {
		t.Errorf("%q", got)
	}
}
