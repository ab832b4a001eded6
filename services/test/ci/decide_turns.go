//go:build linux

package main

import (
	"slices"

	"github.com/benchmark-ai/bai/services/test/ci/stage"
)

// turns are the stages of a repeated check.
type turns struct {
	before   []stage.Stage // set-up of the suites, once
	suites   []stage.Stage // each turn
	after    []stage.Stage // clear up
	excluded []string      // names of suites that cannot run beside the others
}

// beginCluster is the stage that begins the one cluster with nodes that there can
// be, and bootsClusters the suite that boots others.
const (
	beginCluster  = "begin cluster"
	bootsClusters = "cluster of tests"
)

// planTurns splits the stages. Of those that start servers it takes those that the suites
// of the given names need; no names mean all suites.
func planTurns(all []stage.Stage, names []string) (turns, error) {
	var t turns
	var setup []stage.Stage
	for _, s := range all {
		switch {
		case s.Always:
			t.after = append(t.after, s)
		case s.Setup:
			setup = append(setup, s)
		case len(names) == 0 || slices.Contains(names, s.Name):
			t.suites = append(t.suites, s)
		}
	}
	needs := func(name string) bool {
		return slices.ContainsFunc(t.suites, func(s stage.Stage) bool { return slices.Contains(s.After, name) })
	}
	for _, s := range setup {
		if slices.Contains(s.After, "test bed") && !needs(s.Name) {
			continue
		}
		t.before = append(t.before, s)
	}
	if needs(beginCluster) {
		t.suites = slices.DeleteFunc(t.suites, func(s stage.Stage) bool {
			if s.Name == bootsClusters {
				t.excluded = append(t.excluded, s.Name)
			}
			return s.Name == bootsClusters
		})
	}
	_, err := selectStages(t.suites, names) // which all must be there
	for i := range t.suites {
		t.suites[i].After = nil
	}
	return t, err
}
