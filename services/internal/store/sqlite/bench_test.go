package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// batch is how many rows a benchmark appends at once.
const batch = 1000

func perSecond(b *testing.B, rows int, what string) {
	b.Helper()
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), what+"/s")
}

// lineOf returns the nth line of a log as training programs write them.
func lineOf(n int) event.Line {
	text := fmt.Sprintf("2026-01-02T10:%02d:%02d.%03d INFO trainer: epoch %d step %d loss=%.4f lr=%.5f on node-%d", n/60%60, n%60, n%1000, n/1000, n, 1/float64(n+1), 0.001, n%16)
	return event.Line{Seq: int64(n) * 100, Time: time.Now().UnixNano(), Text: text}
}

// logs returns batches of lines.
func logs(batches int) (all [][]event.Line) {
	for n := range batches {
		lines := make([]event.Line, batch)
		for i := range lines {
			lines[i] = lineOf(n*batch + i)
		}
		all = append(all, lines)
	}
	return all
}

func BenchmarkAppendLines(b *testing.B) {
	all := logs(100)
	for _, sources := range []int{1, 20} {
		b.Run(fmt.Sprint("sources=", sources), func(b *testing.B) {
			s := storetest.Open(b)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				lines := all[n%len(all)]
				for i := range lines {
					lines[i].Seq = int64(n*batch+i) * 100
				}
				if err := s.AppendLines(b.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", fmt.Sprint("p", n%sources)), Lines: lines}}); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N*batch, "lines")
		})
	}
}

func BenchmarkAppendSamples(b *testing.B) {
	for name, labels := range map[string]map[string]string{"labels=0": nil, "labels=2": {"level": "9", "tool": "gzip"}} {
		b.Run(name, func(b *testing.B) {
			s := storetest.Open(b)
			value := 1.5
			samples := make([]event.Sample, batch)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				for i := range samples {
					samples[i] = event.Sample{Seq: int64(n*batch+i) * 60, Name: []string{"loss", "accuracy", "speed"}[i%3], Value: &value, Unit: "s", Time: time.Now().UnixNano(), Labels: labels}
				}
				if err := s.AppendSamples(b.Context(), []store.Samples{{Origin: storetest.NewOrigin("r", "p"), Samples: samples}}); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N*batch, "samples")
		})
	}
}

func BenchmarkCreateDoc(b *testing.B) {
	s := storetest.Open(b)
	value := []byte(`{"run":"01k","text":"` + strings.Repeat("x", 1000) + `"}`)
	for n := 0; b.Loop(); n++ {
		if err := s.CreateDoc(b.Context(), store.Doc{Kind: store.KindPlan, Key: fmt.Sprint(n), Value: value}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutRun(b *testing.B) {
	s := storetest.Open(b)
	for n := 0; b.Loop(); n++ {
		r, c := storetest.NewRun(fmt.Sprintf("run%08d", n/8), time.Unix(int64(n/8), 0).UTC())
		r.Descriptor, r.Labels = strings.Repeat("x", 2000), map[string]string{"task": "t", "team": "u"}
		r.Revision, c.Revision, c.Event = int64(n%8+1), int64(n%8+1), fmt.Sprint(n)
		r.Phase = event.Phases()[n%8]
		if err := s.PutRun(b.Context(), r, c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadLines(b *testing.B) {
	s := storetest.Open(b)
	lines := make([]event.Line, batch)
	for n := range 100 {
		for i := range lines {
			lines[i] = storetest.NewLine(int64(n*batch+i), strings.Repeat("x", 80))
		}
		if err := s.AppendLines(b.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: lines}}); err != nil {
			b.Fatal(err)
		}
	}
	read, cursor := 0, ""
	b.ReportAllocs()
	for b.Loop() {
		page, next, err := s.Lines(b.Context(), store.LineQuery{Run: "r"}, cursor, batch)
		if err != nil {
			b.Fatal(err)
		}
		if read, cursor = read+len(page), next; len(page) == 0 {
			cursor = ""
		}
	}
	perSecond(b, read, "lines")
}

func BenchmarkReadRuns(b *testing.B) {
	s := storetest.Open(b)
	for n := range 5000 {
		r, c := storetest.NewRun(fmt.Sprintf("run%08d", n), time.Unix(int64(n), 0).UTC())
		r.Owner, r.Labels = fmt.Sprint("owner", n%100), map[string]string{"task": fmt.Sprint(n % 500)}
		if err := s.PutRun(b.Context(), r, c); err != nil {
			b.Fatal(err)
		}
	}
	for name, f := range map[string]store.RunFilter{
		"all": {}, "owner": {Owner: "owner7"}, "label": {Labels: map[string]string{"task": "7"}}, "phase": {Phases: []event.Phase{event.PhaseRunning, event.PhasePending}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Runs(b.Context(), f, "", 20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNothingNew(b *testing.B) {
	s := storetest.Open(b)
	if err := s.AppendLines(b.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: []event.Line{storetest.NewLine(1, "x")}}}); err != nil {
		b.Fatal(err)
	}
	_, cursor, err := s.Lines(b.Context(), store.LineQuery{Run: "r"}, "", 10)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := s.Lines(b.Context(), store.LineQuery{Run: "r"}, cursor, 10); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunPoints(b *testing.B) {
	const runs, series = 200, 50
	s := storetest.Open(b)
	var ids []string
	for n := range runs {
		p := storetest.NewPoints(fmt.Sprintf("run%08d", n), time.Unix(int64(n), 0), 1)
		for i := range series {
			p.Points = append(p.Points, storetest.NewValue(fmt.Sprint("metric", i), float64(n)))
		}
		if err := s.PutPoints(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, p.Run)
	}
	for name, metrics := range map[string][]string{"metrics=51": nil, "metrics=1": {"metric7"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all, err := s.RunPoints(b.Context(), ids, metrics)
				if err != nil || len(all) != runs {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}
