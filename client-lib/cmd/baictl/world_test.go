package main_test

import (
	"fmt"
	"math"
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
)

// helloText is the descriptor of the world's first run, with what was put in
// place of its values.
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

// newYear is when the world's runs were submitted, unless a test wants to know
// their age.
var newYear = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// world is a platform with a run in each state that there is to be shown.
func world(t *testing.T, begin time.Time) *baitest.Platform {
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
		Data: []*baiv1.DataSet{{
			Source: "https://example.org/corpus.tar", Path: "/data/corpus", Size: 4 << 20,
			Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		}},
	})
	tell(p, hello, at)
	p.Keep(hello, "1/benchmark-0/results/out.json", "{\"loss\": 0.25}\n")
	p.Keep(hello, "1/benchmark-0/完成.txt", "done\n")
	p.Store("hello", "# the first version\n"+helloText)
	p.Store("hello", helloText)
	p.Store("训练", "[info]\n")
	p.Put("https://example.org/hello.toml", helloText)
	p.Add(&baiv1.Run{
		Name: "训练-resnet-五十-mit-einem-sehr-langen-Namen", Owner: "ann", CreateTime: at(100), StartTime: at(101),
		Phase: baiv1.Phase_PHASE_RUNNING, Attempt: 2, DescriptorFile: "resnet.toml", Message: "line one\nline \x1b[31mtwo",
	})
	p.Add(&baiv1.Run{
		Owner: "ann", CreateTime: at(160), StartTime: at(161), EndTime: at(3761), Phase: baiv1.Phase_PHASE_FINISHED,
		Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER,
		Reason: "NonZeroExit", Message: "the process exited with 3", ExitCode: new(int32(3)), DescriptorFile: "bad.toml",
		DescriptorToml: "[env]\ndocker_image = 7\n",
		Completeness:   &baiv1.Completeness{Lines: 7, Samples: 1, Missing: 2, Awaited: []string{"metrics of benchmark/0"}},
	})
	p.Add(&baiv1.Run{
		Name: "secret", Owner: "bob", Namespace: "pets", CreateTime: at(170),
		Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_CANCELED,
	})
	return p
}

// tell gives the first run a history and data.
func tell(p *baitest.Platform, id string, at func(int) *timestamppb.Timestamp) {
	history(p, id, at)
	origin := &baiv1.Origin{Attempt: 1, Role: "benchmark", Pod: "p1", Container: "benchmark", Stream: "output"}
	for i, text := range []string{"epoch 1", "warning: slow", "epoch 2", "loss=0.5 \x1b[1mbold\x1b[0m", "完成"} {
		p.Log(id, &baiv1.LogLine{Origin: origin, Sequence: int64(i * 100), Stderr: i == 1, Time: at(2 + i), Text: text})
	}
	for i, v := range []float64{0.5, 0.25, 1.0 / 3, math.NaN()} {
		p.Sample(id, &baiv1.Sample{
			Origin: origin, Sequence: int64(i * 10), Metric: "loss", Value: v, Time: at(2 + i), Step: new(int64(i)),
		})
	}
	for i, v := range []float64{123.456, 1234567, 100} {
		p.Sample(id, &baiv1.Sample{
			Origin: origin, Sequence: int64(40 + i), Metric: "compress", Value: v, Unit: "MB/s", Time: at(6),
			Labels: map[string]string{"level": fmt.Sprint(1 + i/2)},
		})
	}
	p.Complete(id, &baiv1.Completeness{Complete: true, Samples: 7, Lines: 5})
}

func history(p *baitest.Platform, id string, at func(int) *timestamppb.Timestamp) {
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
