package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

func sampleOf(name string, labels ...string) *event.Sample {
	s := &event.Sample{Name: name}
	for i := 0; i < len(labels); i += 2 {
		if s.Labels == nil {
			s.Labels = make(map[string]string)
		}
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

func TestASeriesIsANameAndASetOfLabels(t *testing.T) {
	var s extract.SeriesLimiter
	for i, sample := range []*event.Sample{
		sampleOf("a"), sampleOf("b"), sampleOf("a", "b", ""), sampleOf("ab"), sampleOf("a", "x", "1"), sampleOf("a", "x", "2"), sampleOf("a", "y", "1"),
		sampleOf("a", "x", "1", "y", "2"), sampleOf("a", "x", "2", "y", "1"), sampleOf("a", "x1", ""), sampleOf("a", "x", "y"), sampleOf("a", "y", "x"),
	} {
		if s.Admit(sample); len(s.TakeAdmitted()) != 1 {
			t.Errorf("sample %d, %+v, is of a series that was met", i, sample)
		}
		if s.Admit(sample); len(s.TakeAdmitted()) != 0 {
			t.Errorf("sample %d, %+v, is of no series that was met", i, sample)
		}
	}
	for range 20 { // for several orders of the map
		if s.Admit(sampleOf("a", "y", "2", "x", "1")); len(s.TakeAdmitted()) != 0 {
			t.Error("the order of labels makes a series")
		}
	}
}

func TestOnlySoManySeriesAreAdmittedAndTheirSamplesStillAre(t *testing.T) {
	for most, want := range map[int]string{extract.MaxSeries: "15000 series are kept of one run, the first", 468: "15000 series are kept of one run, 468 of this pod, the first"} {
		if got := extract.TooManySeries(most); !strings.HasPrefix(got, want) {
			t.Errorf("said is %q, want %q", got, want)
		}
	}
	var first extract.SeriesLimiter
	for i := range extract.MaxSeries {
		if !first.Admit(sampleOf("m", "n", fmt.Sprint(i))) {
			t.Fatalf("number %d is not admitted", i)
		}
	}
	var next extract.SeriesLimiter // in another process, which gets the series of the first
	next.Add(first.TakeAdmitted()...)
	for _, s := range []*extract.SeriesLimiter{&first, &next} {
		if s.Admit(sampleOf("other")) || s.Admit(sampleOf("m", "n", "x")) || !s.Admit(sampleOf("m", "n", "7")) {
			t.Error("what was met is admitted, and nothing else")
		}
		if len(s.TakeAdmitted()) != 0 {
			t.Error("nothing is new")
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	for name, samples := range map[string][]*event.Sample{
		"one":    {sampleOf("loss")},
		"two":    {sampleOf("loss"), sampleOf("accuracy")},
		"labels": {sampleOf("loss", "gpu", "0", "host", "node-1")},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var s extract.SeriesLimiter
			for b.Loop() {
				for _, x := range samples {
					s.Admit(x)
				}
			}
		})
	}
}
