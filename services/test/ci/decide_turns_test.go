//go:build linux

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/ci/stage"
)

func TestTurnsBeginOnlyWhatTheirSuitesNeed(t *testing.T) {
	t.Parallel()
	all := []stage.Stage{
		{Name: "packages", Setup: true},
		{Name: "test bed", Setup: true},
		{Name: "image tool", After: []string{"test bed"}},
		{Name: "begin servers", Setup: true, After: []string{"test bed"}},
		{Name: "drivers", After: []string{"begin servers"}},
		{Name: bootsClusters, After: []string{"test bed"}},
		{Name: beginCluster, Setup: true, After: []string{"test bed"}},
		{Name: "Kubernetes", After: []string{beginCluster}},
		{Name: "nothing is left", Always: true},
	}
	names := func(stages []stage.Stage) []string {
		var some []string
		for _, s := range stages {
			some = append(some, s.Name)
		}
		return some
	}
	for name, tt := range map[string]struct {
		only                 []string
		before, suites, left []string
	}{
		"all": {
			nil,
			[]string{"packages", "test bed", "begin servers", beginCluster},
			[]string{"image tool", "drivers", "Kubernetes"},
			[]string{bootsClusters},
		},
		"one that needs the cluster":  {[]string{"Kubernetes"}, []string{"packages", "test bed", beginCluster}, []string{"Kubernetes"}, nil},
		"one that boots its own":      {[]string{bootsClusters}, []string{"packages", "test bed"}, []string{bootsClusters}, nil},
		"one that needs nothing more": {[]string{"image tool"}, []string{"packages", "test bed"}, []string{"image tool"}, nil},
	} {
		p, err := planTurns(all, tt.only)
		if err != nil {
			t.Fatal(err)
		}
		got := [][]string{names(p.before), names(p.suites), names(p.after), p.excluded}
		if diff := cmp.Diff([][]string{tt.before, tt.suites, {"nothing is left"}, tt.left}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	if _, err := planTurns(all, []string{"none"}); err == nil {
		t.Error("a suite that there is not is taken")
	}
}
