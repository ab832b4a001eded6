package session

import (
	"context"
	"runtime/debug"

	"github.com/benchmark-ai/bai/client-lib/bai"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// RunsOfSet returns the runs of the set with an ID, by their IDs.
func RunsOfSet(ctx context.Context, c *bai.Client, id string) (map[string]*baiv1.Run, error) {
	runs := make(map[string]*baiv1.Run)
	for run, err := range c.List(ctx, bai.Filter{Set: id, Page: 1000}) {
		if err != nil {
			return nil, err
		}
		runs[run.GetId()] = run
	}
	return runs, nil
}

// ChangesOf returns the changes of a run so far.
func ChangesOf(ctx context.Context, c *bai.Client, run *baiv1.Run) ([]*baiv1.Change, error) {
	if run.GetRevision() == 0 {
		return nil, nil
	}
	var all []*baiv1.Change
	for change, err := range c.Watch(ctx, run.GetId(), 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, change)
		if change.GetRevision() >= run.GetRevision() {
			break
		}
	}
	return all, nil
}

// OwnVersion is the version of baictl: the one that the linker was given, or that of the build.
func OwnVersion(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
