package main_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const (
	helloID   = "01kdyt1q880000000000000001"
	runningID = "01kdyt1q880000000000000002"
	failedID  = "01kdyt1q880000000000000003"

	damagedSHA256 = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"
)

// helloText is the descriptor of the fixture's first run, with its values filled in.
const helloText = `spec_version = "1.0"

[info]
description = "<hello> & \u001b[31m"
labels = { model = "x" }

[hardware]
cpus = 2

[env]
docker_image = "docker.io/library/hello-world:1"
vars = { GREETING = "good day" }

[[data.sources]]
src = "https://example.org/corpus.tar"
path = "/data/corpus"
`

// newYear is the time at which the fixture's runs were submitted, unless a test needs
// their age.
var newYear = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// newFixture is a platform with a run in each state that there is to be shown.
func newFixture(t *testing.T, begin time.Time) *baitest.Platform {
	t.Helper()
	p := baitest.Start(t)
	at := func(seconds int) *timestamppb.Timestamp {
		return timestamppb.New(begin.Add(time.Duration(seconds) * time.Second))
	}
	hello := p.Add(&baiv1.Run{
		Name: "hello", Owner: "ann", CreateTime: at(0), DescriptorFile: "hello.toml",
		DescriptorToml: helloText,
		Overrides:      []*baiv1.Override{{Path: "env.vars.GREETING", Value: "good day"}},
		Origination:    &baiv1.Origination{Uri: "stored:hello@1", Sha256: baitest.Digest("# the first version\n" + helloText)},
		Labels:         map[string]string{"task_name": "hello", "model": "x"},
		Description:    "Says hello, and measures how fast \x1b[1mnothing\x1b[0m is compressed at two levels, as an example of a run with metrics",
		Framework:      "pytorch", FrameworkVersion: "2.4", DataIds: []string{"corpus", "words"},
		Owed: []*baiv1.OwedDestination{{Name: "warehouse", Since: timestamppb.New(at(70).AsTime()), Error: "the database cannot be reached: connection refused"}},
		Data: []*baiv1.DataSet{{
			Source: "https://example.org/corpus.tar", Path: "/data/corpus", Size: 4 << 20,
			Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		}},
	})
	addRunData(p, hello, at)
	addResults(p, hello)
	p.AddArtifact(hello, "1/benchmark-0/results/out.json", "{\"loss\": 0.25}\n")
	p.AddArtifact(hello, "1/benchmark-0/完成.txt", "done\n")
	p.StoreDescriptor("hello", "# the first version\n"+helloText)
	p.StoreDescriptor("hello", helloText)
	p.StoreDescriptor("训练", "[info]\n")
	p.AddURI("https://example.org/hello.toml", helloText)
	p.SetPrefetchWaits("https://example.org/gone.tar", "connection refused, retrying in 2s (try 2 of 7)")
	addStoredData(p, at)
	p.Add(&baiv1.Run{
		Name: "训练-resnet-五十-mit-einem-sehr-langen-Namen", Owner: "ann", CreateTime: at(100), StartTime: at(101),
		Phase: baiv1.Phase_PHASE_RUNNING, Attempt: 2, DescriptorFile: "resnet.toml", Message: "line one\nline \x1b[31mtwo",
	})
	p.Add(&baiv1.Run{
		Owner: "ann", CreateTime: at(160), StartTime: at(161), EndTime: at(3761), Phase: baiv1.Phase_PHASE_FINISHED,
		Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER,
		Reason: "NonZeroExit", Message: "the process exited with 3", ExitCode: new(int32(3)), DescriptorFile: "bad.toml",
		Lineage:        &baiv1.Lineage{ScheduleId: nightlyID, FiringTime: timestamppb.New(newYear.Add(-49 * time.Hour))},
		DescriptorToml: "[env]\ndocker_image = 7\n",
		Completeness:   &baiv1.Completeness{Lines: 7, Samples: 1, Missing: 2, Awaited: []string{"metrics of benchmark/0"}},
	})
	p.Add(&baiv1.Run{
		Name: "secret", Owner: "bob", Namespace: "pets", CreateTime: at(170),
		Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_CANCELED,
	})
	addSchedules(p)
	addSets(p, begin)
	addSetResults(p)
	addComparisons(p)
	addTask(p)
	addAlarms(p)
	return p
}

// addResults sets the summaries and the environment of the first run.
func addResults(p *baitest.Platform, id string) {
	nan := math.NaN()
	p.SetSummaries(id, &baiv1.GetSummariesResponse{
		Complete: true, Attempt: 1, Samples: 7, Method: "median: the value in the middle",
		Notes:   []string{"1 sample not summarised: \x1b[31mtoo many"},
		Unknown: []*baiv1.UnknownMetric{{Metric: "energy.joules", Reason: "no pod measured power: \x1b[31mneither nvidia-smi nor a counter could be read"}},
		Summaries: []*baiv1.MetricSummary{
			{
				Metric: "compress", Unit: "MB/s", Labels: map[string]string{"level": "1"}, N: 6, Min: 100, Max: 1234567, Median: 120.5, P90: 1000, P95: 1100, P99: 1200,
				Mean: 200.25, Sd: 12.5, First: 123.456, Last: 100, Interval: &baiv1.Interval{Low: 100, High: 1234567, Level: 0.96875},
			},
			{Metric: "cost.amount", Unit: "USD", Direction: "lower", Min: 0.51, Max: 0.51, Median: 0.51, P90: 0.51, P95: 0.51, P99: 0.51, Mean: 0.51, Sd: nan, First: 0.51, Last: 0.51},
			{Metric: "loss", Direction: "lower", N: 3, NotNumbers: 1, Min: 0.25, Max: 0.5, Median: 1.0 / 3, P90: 0.45, P95: 0.475, P99: 0.495, Mean: 0.361, Sd: 0.127, First: 0.5, Last: 1.0 / 3},
			{Metric: "nothing", NotNumbers: 2, Min: nan, Max: nan, Median: nan, P90: nan, P95: nan, P99: nan, Mean: nan, Sd: nan, First: nan, Last: nan},
		},
	})
	p.SetEnvironment(id, &baiv1.Environment{
		Fingerprint: "2c26b46b68ffc68ff99b453c1d304134", DescriptorSha256: baitest.Digest(helloText), Image: "docker.io/library/hello-world:1",
		Data: []*baiv1.DataSet{{Source: "https://example.org/corpus.tar", Path: "/data/corpus", Size: 4 << 20, Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
		Pods: []*baiv1.PodEnvironment{{
			Role: "benchmark", Pod: "p1", Attempt: 1, PlatformVersion: "v1.2.0", Tools: map[string]string{"python3": "Python 3.11.2", "gcc": "\x1b[31m12.2.0"},
			Unknown: []string{"how the clock follows the load: permission denied"},
			Machine: &baiv1.Machine{
				Node: "node-7", Kernel: "6.8.0-45-generic", Architecture: "amd64", Os: "Debian GNU/Linux 12 (bookworm)", CpuModel: "AMD EPYC 9454", Cpus: 96, CpusAllowed: 8,
				Cores: 48, Sockets: 1, MaxMhz: 3810.5, Turbo: "on", Memory: 403 << 30, NumaNodes: 2, CpuLimit: 4, MemoryLimit: 16 << 30,
				Gpus: []*baiv1.Gpu{{Model: "NVIDIA H200", Memory: 141 << 30, Uuid: "GPU-1"}}, GpuDriver: "550.90.07", Cuda: "12.4", Hypervisor: "kvm",
			},
		}},
	})
}

// addStoredData stores data that runs need, and data that they do not need.
func addStoredData(p *baitest.Platform, at func(int) *timestamppb.Timestamp) {
	p.AddData(&baiv1.StoredData{
		Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Size: 4 << 20, CreateTime: at(0), UseTime: at(100),
		Sources: []string{"https://example.org/corpus.tar", "s3://data-sets/a/very/long/name/of/an/object/that/is/the/same/corpus.tar"}, Runs: []string{runningID},
	})
	p.AddData(&baiv1.StoredData{Sha256: "9f8b0822cd15d6c15b0f00a0886d081884c7d659a2feaa0c55ad015a3bf4f1b2", Size: 0, CreateTime: at(1), UseTime: at(1)})
	p.AddData(&baiv1.StoredData{
		Sha256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", Size: 150 << 30, CreateTime: at(2), UseTime: at(2), Sources: []string{"gs://数据/\x1b[31m"},
	})
	p.AddData(&baiv1.StoredData{Sha256: damagedSHA256, Size: 3, CreateTime: at(3), UseTime: at(3), Sources: []string{"file:///data/bar"}})
	p.Damage(damagedSHA256)
}

// addRunData gives the first run a history and data.
func addRunData(p *baitest.Platform, id string, at func(int) *timestamppb.Timestamp) {
	addHistory(p, id, at)
	origin := &baiv1.Origin{Attempt: 1, Role: "benchmark", Pod: "p1", Container: "benchmark", Stream: "output"}
	for i, text := range []string{"epoch 1", "warning: slow", "epoch 2", "loss=0.5 \x1b[1mbold\x1b[0m", "完成"} {
		p.Log(id, &baiv1.LogLine{Origin: origin, Sequence: int64(i * 100), Stderr: i == 1, Time: at(2 + i), Text: text})
	}
	for i, v := range []float64{0.5, 0.25, 1.0 / 3, math.NaN()} {
		p.Sample(id, &baiv1.Sample{
			Origin: origin, Sequence: int64(i * 10), Metric: "loss", Value: v, Time: at(2 + i), Step: new(int64(i)), Direction: "lower",
		})
	}
	for i, v := range []float64{123.456, 1234567, 100} {
		p.Sample(id, &baiv1.Sample{
			Origin: origin, Sequence: int64(40 + i), Metric: "compress", Value: v, Unit: "MB/s", Time: at(6),
			Labels: map[string]string{"level": fmt.Sprint(1 + i/2)},
		})
	}
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Samples: 7, Lines: 5})
}

func addHistory(p *baitest.Platform, id string, at func(int) *timestamppb.Timestamp) {
	bytes := func(n int64) *baiv1.Progress { return &baiv1.Progress{Done: n, Total: 4 << 20, Unit: "bytes"} }
	for i, c := range []*baiv1.Change{
		{Phase: baiv1.Phase_PHASE_SUBMITTED, Kind: "bai.submitted"},
		{Phase: baiv1.Phase_PHASE_FETCHING, Kind: "bai.status", Progress: bytes(0)},
		{Phase: baiv1.Phase_PHASE_FETCHING, Kind: "bai.status", Progress: bytes(1 << 20)},
		{Phase: baiv1.Phase_PHASE_QUEUED, Kind: "bai.status"},
		{Phase: baiv1.Phase_PHASE_RUNNING, Kind: "bai.status"},
		{Phase: baiv1.Phase_PHASE_LAUNCHING, Kind: "bai.retried", Attempt: 2, FailureClass: baiv1.FailureClass_FAILURE_CLASS_INFRA, Reason: "Evicted", Message: "node lost"},
		{Phase: baiv1.Phase_PHASE_RUNNING, Kind: "bai.status", Attempt: 2},
		{Phase: baiv1.Phase_PHASE_FINISHED, Kind: "bai.finished", Attempt: 2, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
	} {
		c.Time = at(i)
		p.Change(id, c)
	}
}

const nightlyID = "7rp0wrv5k2m8v1xqd3sj4thb6n"

// sizesID is the set sizes.
const sizesID = "6kq3w8r2v5m1x7d4j9thb0pzcn"

// addSets adds two sets: one that runs, one that a failure has stopped.
func addSets(p *baitest.Platform, begin time.Time) {
	run := func(id string, repetition int32, phase baiv1.Phase, outcome baiv1.Outcome) *baiv1.CellRun {
		return &baiv1.CellRun{RunId: id, Repetition: repetition, Phase: phase, Outcome: outcome}
	}
	p.AddSet(&baiv1.Set{
		Id: sizesID, Name: "sizes", Namespace: "pets", Owner: "ann", Description: "All sizes \x1b[31m", DescriptorFile: "sweep.toml", DescriptorToml: helloText,
		Labels: map[string]string{"task_name": "sizes"}, CellCount: 3, RunCount: 9, Repetitions: 2, Warmup: 1, Order: "interleaved", MaxParallel: 2, OnFailure: "continue",
		State: baiv1.SetState_SET_STATE_RUNNING, Submitted: 6, Active: 1, Succeeded: 4, Failed: 1, FailureClasses: map[string]int32{"infra": 1},
		Failures:   []*baiv1.SetFailure{{RunId: failedID, Cell: "size=1M", Repetition: 1, Message: "the process exited with 3"}},
		ActiveRuns: []string{runningID}, EstimatedEndTime: timestamppb.New(begin.Add(time.Hour)), CreateTime: timestamppb.New(begin), UpdateTime: timestamppb.New(begin.Add(time.Minute)),
	},
		&baiv1.Cell{Id: "0123456789ab", Name: "size=1K", Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"1K"`}}, Runs: []*baiv1.CellRun{
			{RunId: "w", Repetition: 1, Warmup: true, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
			run("r1", 1, baiv1.Phase_PHASE_FINISHED, baiv1.Outcome_OUTCOME_SUCCEEDED), run(runningID, 2, baiv1.Phase_PHASE_RUNNING, 0),
		}},
		&baiv1.Cell{Id: "123456789abc", Name: "size=1M", Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"1M"`}}, Runs: []*baiv1.CellRun{
			run(failedID, 1, baiv1.Phase_PHASE_FINISHED, baiv1.Outcome_OUTCOME_FAILED), run("r2", 2, baiv1.Phase_PHASE_FINISHED, baiv1.Outcome_OUTCOME_CANCELED),
		}},
		&baiv1.Cell{Id: "23456789abcd", Name: "size=1G", Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"1G"`}}},
	)
	p.AddSet(&baiv1.Set{
		Id: "7sq3w8r2v5m1x7d4j9thb0pzcn", Owner: "bob", Namespace: "cars", CellCount: 1, RunCount: 5, Repetitions: 5, Order: "sequential", OnFailure: "stop",
		State: baiv1.SetState_SET_STATE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, Message: "a run failed, and sweep.on_failure is stop",
		Submitted: 2, Succeeded: 1, Failed: 1, CreateTime: timestamppb.New(begin.Add(-time.Hour)), UpdateTime: timestamppb.New(begin), EndTime: timestamppb.New(begin),
	})
}

// addSetResults adds results to the set sizes.
func addSetResults(p *baitest.Platform) {
	p.SetResults(sizesID,
		&baiv1.CellResult{
			Id: "0123456789ab", Name: "size=1K", Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"1K"`}}, Succeeded: 2, Unsummarised: 1,
			Metrics: []*baiv1.MetricResult{metricResult("loss", "", "", 0.25)},
		},
		&baiv1.CellResult{Id: "123456789abc", Name: "size=1M", Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"1M"`}}},
		&baiv1.CellResult{Id: "23456789abcd", Name: "size=1G", Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"1G"`}}},
	)
}

// gridID is a set with results of all kinds.
const gridID = "8aq3w8r2v5m1x7d4j9thb0pzcn"

// addGrid adds a set of four cells with 6 repetitions each.
func addGrid(p *baitest.Platform, begin time.Time) {
	p.AddSet(&baiv1.Set{
		Id: gridID, Owner: "eve", Namespace: "cars", CellCount: 4, RunCount: 32, Repetitions: 8, Order: "interleaved", OnFailure: "continue",
		State: baiv1.SetState_SET_STATE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED, Submitted: 24, Succeeded: 24, Skipped: 8,
		StopWhen:    &baiv1.StopWhen{Metric: "latency", HalfWidth: 0.025, Min: 6, Max: 8},
		StopMessage: `metric "latency" of stop_when has no values in cell size=1K,num_threads=1: its repetitions go on to 8`,
		CreateTime:  timestamppb.New(begin.Add(-2 * time.Hour)), UpdateTime: timestamppb.New(begin), EndTime: timestamppb.New(begin),
	}, &baiv1.Cell{Id: "000000000001", Name: "size=1K,num_threads=1", Skipped: 2})
	var cells []*baiv1.CellResult
	for i, size := range []string{"1K", "1|M"} {
		for j, threads := range []string{"1", "2"} {
			at := float64(100*i + 40*j)
			c := &baiv1.CellResult{
				Id: fmt.Sprintf("%012x", 2*i+j+1), Name: "size=" + size + ",num_threads=" + threads, Succeeded: 6, Incomplete: int32(i * j), Skipped: int32(2 * i),
				Parameters: []*baiv1.CellParameter{{Name: "size", Value: `"` + size + `"`}, {Name: "env.num_threads", Value: threads}},
				Metrics: []*baiv1.MetricResult{
					metricResult("latency", "ms", "lower", 212.5-at, 214-at, 213-at, 211.25-at, 212-at, 215-at),
					metricResult("run.duration", "s", "", 1, 2, 3, 4, 5, 6),
					metricResult("system.cpu", "cores", "", 1.5, 1.25),
					metricResult("throughput", "req/s \x1b[31m", "higher", 1000+at, 1001+at, 1002+at, math.Inf(1)),
				},
			}
			if i == 1 {
				c.Metrics = slices.Delete(c.GetMetrics(), 3, 4)
				labeled := metricResult("p99", "ms", "lower", 3, 4, 5, 6)
				labeled.Labels = map[string]string{"op": "read"}
				c.Metrics = append(c.Metrics, labeled)
			}
			cells = append(cells, c)
		}
	}
	p.SetResults(gridID, cells...)
}

// metricResult is the result of a metric in one cell, as a platform computes it. Of 6 values the
// interval goes from the smallest to the largest.
func metricResult(metric, unit, direction string, values ...float64) *baiv1.MetricResult {
	m := &baiv1.MetricResult{Metric: metric, Unit: unit, Direction: direction}
	var sorted []float64
	for i, v := range values {
		m.Values = append(m.Values, &baiv1.RepetitionValue{Repetition: int32(i + 1), Value: v})
		if !math.IsInf(v, 0) {
			sorted = append(sorted, v)
		}
	}
	slices.Sort(sorted)
	n := len(sorted)
	m.N, m.Excluded, m.Median, m.Lacking = int32(n), int32(len(values)-n), (sorted[(n-1)/2]+sorted[n/2])/2, int32(max(0, 6-n))
	if n >= 6 {
		m.Interval = &baiv1.Interval{Low: sorted[0], High: sorted[n-1], Level: 0.96875}
	}
	return m
}

// addSchedules adds two schedules: one with a history, one that is paused.
func addSchedules(p *baitest.Platform) {
	p.AddSchedule(&baiv1.Schedule{
		Id: nightlyID, Name: "nightly", Namespace: "pets", Owner: "ann", Version: 3, Description: "Every night \x1b[31m", Scheduling: "0 3 * * mon-fri",
		Timezone: "Europe/Berlin", Concurrency: "forbid", Missed: "latest", MissedWindowSeconds: 3600, DelaySeconds: 90,
		StartTime: timestamppb.New(newYear.AddDate(0, -1, 0)), CreateTime: timestamppb.New(newYear.AddDate(0, -1, 0)), UpdateTime: timestamppb.New(newYear),
		DescriptorFile: "nightly.toml", DescriptorToml: helloText, Labels: map[string]string{"task_name": "night"},
		NextFirings: []*timestamppb.Timestamp{timestamppb.New(newYear.AddDate(0, 0, 3).Add(-time.Hour)), timestamppb.New(newYear.AddDate(0, 0, 4).Add(-time.Hour))},
		Firings: []*baiv1.Firing{
			{Time: timestamppb.New(newYear.Add(-time.Hour)), RunId: "01kdyt1q880000000000000005", Phase: baiv1.Phase_PHASE_RUNNING},
			{Time: timestamppb.New(newYear.Add(-25 * time.Hour)), LastTime: timestamppb.New(newYear.Add(-24 * time.Hour)), Count: 3, Reason: "Missed", Message: "the platform was away", Missed: true},
			{Time: timestamppb.New(newYear.Add(-49 * time.Hour)), RunId: failedID, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, Reason: "NonZeroExit", Message: "the process exited with 3", Missed: true},
		},
		Backfills: []*baiv1.Backfill{{From: timestamppb.New(newYear.AddDate(0, 0, -9)), To: timestamppb.New(newYear.AddDate(0, 0, -5)), Next: timestamppb.New(newYear.AddDate(0, 0, -7)), By: "ann"}},
	})
	p.AddSchedule(&baiv1.Schedule{
		Id: "7rp0wrv5k2m8v1xqd3sj4thb6p", Owner: "bob", Namespace: "cars", Version: 1, Scheduling: "@hourly", Timezone: "UTC", Concurrency: "allow", Missed: "skip",
		Paused: true, UpdateTime: timestamppb.New(newYear),
	})
}

// addComparisons adds what the platform answers where baseline main and run hello, and set sizes
// and itself are compared.
func addComparisons(p *baitest.Platform) {
	around := func(v float64) *baiv1.Interval { return &baiv1.Interval{Low: v - 1, High: v + 1, Level: 0.96875} }
	few := &baiv1.SideValues{N: 1, Median: 7, Samples: 50, Values: []float64{7}}
	main := &baiv1.ComparedSide{Operand: "baseline:main", RunIds: []string{failedID, runningID}, ExcludedCount: 4}
	for i, why := range []string{"it failed (OOMKilled)", "it has not ended", "it has not ended"} {
		main.Excluded = append(main.Excluded, &baiv1.ExcludedRun{RunId: fmt.Sprintf("01kdyt1q88000000000000001%d", i), Reason: why})
	}
	p.SetComparison(&baiv1.CompareRunsResponse{
		Old: main, New: &baiv1.ComparedSide{Operand: "hello", RunIds: []string{helloID}},
		Series: []*baiv1.SeriesComparison{
			{
				Metric: "rate", Unit: "B/s", Direction: "higher", Labels: map[string]string{"level": "9", "to": "\x1b[1m"}, Verdict: "worse", Test: "mann_whitney",
				Old:    &baiv1.SideValues{N: 6, Median: 100, Interval: around(100), Samples: 300, Values: []float64{99, 100, 100, 101, 100, 100}},
				New:    &baiv1.SideValues{N: 6, Excluded: 1, Median: 90, Interval: around(90), Samples: 300, Values: []float64{90, 89, 91, 90, 90, 90, math.NaN()}},
				Change: &baiv1.Difference{Value: -0.1, Interval: &baiv1.Interval{Low: -0.12, High: -0.08, Level: 0.96}, Relative: true}, P: 0.0005, AdjustedP: 0.002,
			},
			{
				Metric: "latency", Unit: "s", Direction: "lower", Verdict: "better", Test: "prediction", Old: few, New: few, History: 20,
				Change: &baiv1.Difference{Value: -0.5, Interval: &baiv1.Interval{Low: -0.6, High: -0.4, Level: 0.95}, Relative: true}, P: 0.01, AdjustedP: 0.02,
			},
			{
				Metric: "errors", Verdict: "unclear", Reason: "noise", Test: "mann_whitney", Old: few, New: few, Needed: 9, Shows: 2,
				Change: &baiv1.Difference{Value: 3, Interval: &baiv1.Interval{Low: -1, High: 7, Level: 0.96}}, P: 0.2, AdjustedP: 0.4,
			},
			{
				Metric: "loss", Verdict: "unclear", Reason: "many_metrics", Test: "mann_whitney", Old: few, New: few, Needed: 12, Shows: 0.02,
				Change: &baiv1.Difference{Value: 0.01, Interval: &baiv1.Interval{Low: 0.001, High: 0.02, Level: 0.96}, Relative: true}, P: 0.03, AdjustedP: 0.06,
			},
			{Metric: "run.duration", Unit: "s", Verdict: "unclear", Reason: "few_runs", Old: few, New: few, P: 1, AdjustedP: 1, LackingOld: 3, LackingNew: 3, LackingHistory: 4},
			{Metric: "run.queued", Unit: "s", Verdict: "unclear", Reason: "few_runs", Old: few, New: few, P: 1, AdjustedP: 1, LackingOld: 3, LackingNew: 3, LackingHistory: 4},
		},
		Differences: []*baiv1.SideDifference{
			{Subject: "machine", Old: []string{"EPYC, 8 CPUs (1234abcd)"}, New: []string{"Xeon, 8 CPUs (abcd1234)"}, Incomparable: true},
			{Subject: "image", Old: []string{"img:1", "img:2"}},
		},
		Notes: []string{"only hello has metric accuracy"},
	})
	p.SetComparison(&baiv1.CompareRunsResponse{
		Old: &baiv1.ComparedSide{Operand: "sizes", RunIds: []string{"r1", "r2"}}, New: &baiv1.ComparedSide{Operand: "sizes", RunIds: []string{"r1", "r2"}},
		Series: []*baiv1.SeriesComparison{{
			Metric: "rate", Unit: "B/s", Cell: "size=1,threads=2", Verdict: "same", Test: "mann_whitney", Old: few, New: few, P: 1, AdjustedP: 1,
			Change: &baiv1.Difference{Interval: &baiv1.Interval{Level: 0.96}, Relative: true},
		}},
	})
}
