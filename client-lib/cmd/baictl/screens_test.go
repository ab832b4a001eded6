package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const screensHead = `# Screens

baictl on a terminal of 80 columns, for readers who want to see the platform before they install it. A test
(` + "`TestScreens` in `client-lib/cmd/baictl`" + `) draws each screen from a recorded run and holds this page to it;
` + "`GOLDEN=write`" + ` writes the page anew.
`

// A shot is one screen of the page.
type shot struct{ title, line string }

func shots() []shot {
	return []shot{
		{"A descriptor to begin with", "init bench.toml"},
		{"A descriptor with faults", "validate resnet.toml"},
		{"A code of a fault, explained", "explain BAI0012"},
		{"A look before the run", "preflight compress.toml"},
		{"A look before the run that finds a fault", "preflight compress.toml --set hardware.gpus=4"},
		{"A run, from the descriptor to its end", "run compress.toml"},
		{"A run that was begun elsewhere", "watch compress-7"},
		{"Where the time of a run went", "why compress-7"},
		{"A run in full", "get compress-7"},
		{"The log of a run", "logs compress-7 --tail 4"},
		{"Metrics of a run", "metrics compress-7"},
		{"A summary of its metrics", "metrics compress-7 --summary"},
		{"Files that a run left", "artifacts list compress-7"},
		{"All runs", "list"},
		{"A run that its own code failed (class user)", "why resnet-3"},
		{"A run that the machine failed (class infra)", "why resnet-4"},
		{"A run that the platform failed (class platform)", "why resnet-5"},
		{"A run that took too long (class timeout)", "why resnet-6"},
		{"A run that was canceled", "why resnet-8"},
		{"A run that waits for its data", "watch resnet-9 --timeout 10s"},
		{"Schedules", "schedule list"},
		{"A schedule and its runs", "schedule get nightly"},
		{"Data sets that are stored", "data list"},
		{"A run as a file", "export compress-7 FOLDER/compress-7.tar.zst"},
		{"A name for an export that is refused", "export compress-7 compress-7.zip"},
	}
}

const compressTOML = `spec_version = "1.0"

[info]
description = "How fast zstd compresses, by level"
task_name = "compress"

[hardware]
cpus = 2

[env]
docker_image = "docker.io/library/debian:12"

[ml]
benchmark_code = "/opt/compress.sh"

[limits]
deadline = "1h"
`

const resnetTOML = `spec_version = "1.0"

[info]
descriptio = "ResNet-50 on four GPUs"

[hardware]
strategy = "many_nodes"
gpus = "four"

[env]
docker_image = "ghcr.io/team/resnet:7"
`

// newScreensFixture is a platform with the runs of the page. Reasons and messages are those that
// the platform gives.
func newScreensFixture(t *testing.T, begin time.Time) *baitest.Platform {
	t.Helper()
	p := baitest.Start(t)
	at := func(seconds int) *timestamppb.Timestamp {
		return timestamppb.New(begin.Add(time.Duration(seconds) * time.Second))
	}
	compressed := p.Add(&baiv1.Run{
		Name: "compress-7", Owner: "ann", CreateTime: at(0), DescriptorFile: "compress.toml", DescriptorToml: compressTOML,
		Description: "How fast zstd compresses, by level", Labels: map[string]string{"task_name": "compress"},
		Data: []*baiv1.DataSet{{
			Source: "https://data.example.org/corpus.tar", Path: "/data/corpus", Size: 4 << 20,
			Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		}},
	})
	addSuccess(p, compressed, at)
	addMeasurements(p, compressed, at)
	addFailures(p, at)
	addNightlySchedule(p)
	p.AddData(&baiv1.StoredData{
		Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Size: 4 << 20, CreateTime: at(0), UseTime: at(100),
		Sources: []string{"https://data.example.org/corpus.tar"}, Runs: []string{compressed},
	})
	p.AddData(&baiv1.StoredData{Sha256: damagedSHA256, Size: 3600, CreateTime: at(3), UseTime: at(3), Sources: []string{"code sent by ann"}})
	p.SetExport(compressed, &baiv1.Export{Complete: true, Format: 1, PlatformVersion: "v1.2.0"},
		baitest.Transferred{Name: "run.json", Content: `{"id": "` + compressed + "\"}\n"},
		baitest.Transferred{Name: "descriptor/submitted.toml", Content: compressTOML},
		baitest.Transferred{Name: "descriptor/resolved.toml", Content: compressTOML})
	p.OnSubmit(func(id string) {
		addSuccess(p, id, func(s int) *timestamppb.Timestamp {
			return timestamppb.New(newYear.Add(time.Duration(245+s) * time.Second))
		})
	})
	return p
}

// addSuccess gives a run the history of one that goes well.
func addSuccess(p *baitest.Platform, id string, at func(int) *timestamppb.Timestamp) {
	for _, c := range []struct {
		at      int
		phase   baiv1.Phase
		message string
		bytes   int64
	}{
		{0, baiv1.Phase_PHASE_SUBMITTED, "submitted by ann", 0},
		{1, baiv1.Phase_PHASE_FETCHING, "fetching 1 data set", 0},
		{2, baiv1.Phase_PHASE_FETCHING, "fetching 1 data set: https://data.example.org/corpus.tar: connection refused, retrying in 2s (try 2 of 7)", 0},
		{4, baiv1.Phase_PHASE_QUEUED, "fetched 1 data set", 0},
		{4, baiv1.Phase_PHASE_QUEUED, "waiting for a free slot, number 1 in the queue", 0},
		{21, baiv1.Phase_PHASE_LAUNCHING, "starting the command with this machine's own programs (no image)", 0},
		{22, baiv1.Phase_PHASE_PENDING, "copying its data sets to the machine", 0},
		{23, baiv1.Phase_PHASE_RUNNING, "running the benchmark", 0},
		{64, baiv1.Phase_PHASE_RUNNING, "the benchmark ended (exit code 0); collecting the rest of its output", 0},
	} {
		p.Change(id, &baiv1.Change{Phase: c.phase, Kind: "bai.status", Message: c.message, Time: at(c.at)})
	}
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Kind: "bai.finished", Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED, Message: "the benchmark finished (exit code 0)", Time: at(65)})
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Samples: 4, Lines: 5})
}

// addMeasurements gives a run a log, samples, a summary and a file.
func addMeasurements(p *baitest.Platform, id string, at func(int) *timestamppb.Timestamp) {
	origin := &baiv1.Origin{Attempt: 1, Role: "benchmark", Pod: "p1", Container: "benchmark", Stream: "output"}
	for i, text := range []string{"zstd 1.5.4, 2 threads", "level 1: 512.4 MB/s", "level 3: 301.7 MB/s", "level 9: 61.2 MB/s", "done"} {
		p.Log(id, &baiv1.LogLine{Origin: origin, Sequence: int64(i * 100), Time: at(23 + 8*i), Text: text})
	}
	var summaries []*baiv1.MetricSummary
	for i, level := range []struct {
		name  string
		speed float64
	}{{"1", 512.4}, {"3", 301.7}, {"9", 61.2}} {
		labels := map[string]string{"level": level.name}
		p.Sample(id, &baiv1.Sample{Origin: origin, Sequence: int64(i), Metric: "speed", Value: level.speed, Unit: "MB/s", Direction: "higher", Labels: labels, Time: at(31 + 8*i)})
		summaries = append(summaries, &baiv1.MetricSummary{
			Metric: "speed", Unit: "MB/s", Direction: "higher", Labels: labels, N: 1, Min: level.speed, Max: level.speed, Median: level.speed, P90: level.speed, P95: level.speed, P99: level.speed,
			Mean: level.speed, First: level.speed, Last: level.speed,
		})
	}
	p.SetSummaries(id, &baiv1.GetSummariesResponse{Complete: true, Attempt: 1, Samples: 3, Method: "median: the value in the middle", Summaries: summaries})
	p.AddArtifact(id, "1/benchmark-0/results/speed.json", `{"1": 512.4, "3": 301.7, "9": 61.2}`)
}

// addFailures adds a run of each class of failure, one that was canceled and one that waits.
func addFailures(p *baitest.Platform, at func(int) *timestamppb.Timestamp) {
	const started = "starting the command with this machine's own programs (no image)"
	for _, r := range []struct {
		name, reason, message string
		class                 baiv1.FailureClass
		outcome               baiv1.Outcome
		exit                  *int32
	}{
		{"resnet-3", "NonZeroExit", "benchmark ended with exit code 1: torch.cuda.OutOfMemoryError: CUDA out of memory", baiv1.FailureClass_FAILURE_CLASS_USER, baiv1.Outcome_OUTCOME_FAILED, new(int32(1))},
		{"resnet-4", "NodeLost", "its pod had to leave node gpu-3, which is lost or drained: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint", baiv1.FailureClass_FAILURE_CLASS_INFRA, baiv1.Outcome_OUTCOME_FAILED, nil},
		{"resnet-5", "PlatformStopped", "the platform was stopped and ended this benchmark (with --keep-pods benchmarks go on)", baiv1.FailureClass_FAILURE_CLASS_PLATFORM, baiv1.Outcome_OUTCOME_FAILED, nil},
		{"resnet-6", "DeadlineExceeded", "timed out after 1h (limits.deadline)", baiv1.FailureClass_FAILURE_CLASS_TIMEOUT, baiv1.Outcome_OUTCOME_FAILED, nil},
		{"resnet-8", "CanceledByUser", "canceled by ann", 0, baiv1.Outcome_OUTCOME_CANCELED, nil},
	} {
		id := p.Add(&baiv1.Run{Name: r.name, Owner: "ann", CreateTime: at(100), DescriptorFile: "resnet.toml", ExitCode: r.exit})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_SUBMITTED, Kind: "bai.submitted", Message: "submitted by ann", Time: at(100)})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_LAUNCHING, Kind: "bai.status", Message: started, Time: at(101)})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING, Kind: "bai.status", Message: "running the benchmark", Time: at(103)})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Kind: "bai.finished", Outcome: r.outcome, FailureClass: r.class, Reason: r.reason, Message: r.message, Time: at(160)})
		p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Lines: 12})
	}
	id := p.Add(&baiv1.Run{Name: "resnet-9", Owner: "ann", CreateTime: at(180), DescriptorFile: "resnet.toml"})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_SUBMITTED, Kind: "bai.submitted", Message: "submitted by ann", Time: at(180)})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FETCHING, Kind: "bai.status", Message: "fetching 2 data sets", Time: at(181)})
	p.Change(id, &baiv1.Change{
		Phase: baiv1.Phase_PHASE_FETCHING, Kind: "bai.status", Time: at(183),
		Message: "fetching 2 data sets (1 done): https://data.example.org/imagenet.tar: answers 503 Service Unavailable, retrying in 4s (try 3 of 7)",
	})
}

// addNightlySchedule adds a schedule.
func addNightlySchedule(p *baitest.Platform) {
	p.AddSchedule(&baiv1.Schedule{
		Id: nightlyID, Name: "nightly", Namespace: "default", Owner: "ann", Version: 3, Description: "How fast zstd compresses, by level", Scheduling: "0 3 * * mon-fri",
		Timezone: "Europe/Berlin", Concurrency: "forbid", Missed: "latest", MissedWindowSeconds: 3600, CreateTime: timestamppb.New(newYear), UpdateTime: timestamppb.New(newYear),
		DescriptorFile: "nightly.toml", Labels: map[string]string{"task_name": "compress"},
		NextFirings: []*timestamppb.Timestamp{timestamppb.New(newYear.AddDate(0, 0, 3).Add(-time.Hour)), timestamppb.New(newYear.AddDate(0, 0, 4).Add(-time.Hour))},
		Firings: []*baiv1.Firing{
			{Time: timestamppb.New(newYear.Add(-time.Hour)), RunId: helloID, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
			{Time: timestamppb.New(newYear.Add(-25 * time.Hour)), LastTime: timestamppb.New(newYear.Add(-24 * time.Hour)), Count: 3, Reason: "Missed", Message: "the platform did not run", Missed: true},
		},
	})
}

func TestScreens(t *testing.T) {
	var page strings.Builder
	page.WriteString(screensHead)
	for _, one := range shots() {
		fmt.Fprintf(&page, "\n## %s\n\n```console\n$ baictl %s\n%s```\n", one.title, strings.ReplaceAll(one.line, "FOLDER/", ""), screen(t, one))
	}
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "screens.md"), page.String())
}

// screen is a shot as the terminal shows it.
func screen(t *testing.T, one shot) string {
	t.Helper()
	begin := newYear
	if one.line == "list" { // its ages are those of today
		begin = time.Now().Add(-5*time.Minute - 10*time.Second)
	}
	p, dir := newScreensFixture(t, begin), t.TempDir()
	for name, text := range map[string]string{"compress.toml": compressTOML, "resnet.toml": resnetTOML} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := command(t, p.Addr(), strings.Fields(strings.ReplaceAll(one.line, "FOLDER", dir))...)
	cmd.Dir = dir
	s := open(t, cmd, 80)
	s.end()
	text := strings.ReplaceAll(normalizeOutput(s.screen(), p), dir+"/", "")
	for line := range strings.Lines(text) {
		if printer.Width(strings.TrimSuffix(line, "\n")) > 80 && !strings.Contains(line, "baictl: ") {
			t.Errorf("%s: a line has more than 80 columns: %s", one.title, line)
		}
	}
	return text
}
