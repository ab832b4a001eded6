// Package puller brings a run's data from the object store to the disk of its pod, before the benchmark starts there. It is part of a small
// program, so it reads the object store with nothing but files and HTTP.
//
// File decide.go has the rules; the other files carry them out.
package puller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// workers is how many objects are brought at once.
const workers = 3

// Read reads the puller's configuration from the folder where the pod's Secret is mounted; pod.SecretDir if that is "".
func Read(secrets string) (pod.Pull, error) {
	if secrets == "" {
		secrets = pod.SecretDir
	}
	var cfg pod.Pull
	b, err := os.ReadFile(filepath.Join(secrets, pod.PullFile))
	if err == nil {
		err = json.Unmarshal(b, &cfg)
	}
	if err != nil {
		return cfg, infraError("read what to pull: %v", err)
	}
	return cfg, nil
}

// Run brings data set n to data/<n> of the volume that is mounted at dir, pod.Dir if that is "", and verifies its digest. A data set is
// there completely or not at all; an existing one stays. So Run can be repeated after a kill, but must not run twice at once. A shared data
// set is at shared/<n>: the first pod brings it, and all other pods wait for it.
//
// Run calls publish, if not nil, about once a second with the progress. One goroutine calls it at a time, and the progress waits for it.
//
// The error is a *pullError, or that of ctx.
func Run(ctx context.Context, dir string, cfg pod.Pull, publish func(event.Status)) error {
	for _, d := range cfg.Data {
		if err := checkDataSet(d); err != nil {
			return err
		}
	}
	p := &puller{dir: pod.PathIn(dir, pod.Data), sharedDir: pod.PathIn(dir, pod.Shared), cfg: cfg}
	if err := p.removeLeftovers(); err != nil {
		return err
	}
	all := groupByObject(cfg.Data, cfg.Shared)
	p.sizeVolumes(all)
	if err := p.checkSpace(all); err != nil {
		return err
	}
	p.progress = newProgress(cfg, all, publish)
	defer p.progress.start()()
	return p.pullAll(ctx, all)
}

// WriteTermination writes the termination message about the result of Run to the file at path, pod.TerminationMessage if that is "", and
// returns the exit code for it.
func WriteTermination(path string, err error) (code int) {
	if err == nil {
		return 0
	}
	if path == "" {
		path = pod.TerminationMessage
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	_ = os.WriteFile(path, []byte(line), 0o644) //nolint:gosec // for others to read; where it cannot be written, the code still tells
	if own := new(pullError); errors.As(err, &own) && own.Class == event.ClassUser {
		return pod.PullUser
	}
	return pod.PullInfra
}

type puller struct {
	dir       string // of this pod's own data sets
	sharedDir string // of the shared data sets
	cfg       pod.Pull
	store     store
	progress  *progress
	volumes   [2]*volume // this pod's own, and the shared one
}

// sizeVolumes sets the volumes and the size of their data.
func (p *puller) sizeVolumes(all []objectGroup) {
	p.volumes = [2]*volume{{dir: p.dir, reserveSetting: p.cfg.Reserve}, {dir: p.sharedDir, shared: true}}
	for _, v := range p.volumes {
		v.objectBytes = neededBytes(onVolume(all, v.shared), func(dataSet) bool { return false })
	}
}

// volume returns the volume of the shared data sets, or of the others.
func (p *puller) volume(shared bool) *volume {
	if shared {
		return p.volumes[1]
	}
	return p.volumes[0]
}

// removeLeftovers removes the incomplete files of a puller that was killed.
func (p *puller) removeLeftovers() (err error) {
	if p.store, err = openStore(p.cfg); err != nil {
		return err
	}
	if err := cleanDir(p.dir); err != nil {
		return err
	}
	if len(p.cfg.Shared) > 0 && !p.waitsForShared() {
		return cleanDir(p.sharedDir)
	}
	return nil
}

// cleanDir creates a folder for data, and removes incomplete files from it.
func cleanDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the benchmark may run as anybody
		return infraError("prepare the data volume: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*.tmp"))
	if err != nil {
		return infraError("prepare the data volume: %v", err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return infraError("prepare the data volume: %v", err)
		}
	}
	return nil
}

// waitsForShared reports whether another pod brings the shared data sets.
func (p *puller) waitsForShared() bool { return p.cfg.Index > 0 }

// checkSpace returns an error if a volume has too little space for its data. It checks nothing if the object store is on this machine,
// because then the needed space is unknown.
func (p *puller) checkSpace(all []objectGroup) error {
	if p.store.dir != "" {
		return nil
	}
	for _, v := range p.volumes {
		if v.shared && p.waitsForShared() {
			continue
		}
		needed := neededBytes(onVolume(all, v.shared), func(s dataSet) bool { _, err := os.Lstat(p.setPath(s)); return err == nil })
		if needed == 0 {
			continue
		}
		if s, ok := diskSpaceOf(v.dir); ok && s.free < needed {
			return noSpaceError(needed, s)
		}
	}
	return nil
}

// pullAll brings all groups, some at once, until one fails.
func (p *puller) pullAll(ctx context.Context, all []objectGroup) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan objectGroup, len(all))
	for _, g := range all {
		queue <- g
	}
	close(queue)
	var w sync.WaitGroup
	for range workers {
		w.Go(func() {
			for g := range queue {
				if err := p.pullGroup(ctx, g); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	w.Wait()
	return context.Cause(ctx)
}

// pullGroup brings one object to all its places, and reads the store once for all of them.
func (p *puller) pullGroup(ctx context.Context, g objectGroup) error {
	if g.shared && p.waitsForShared() {
		return p.awaitGroup(ctx, g)
	}
	var first *dataSet
	for i, s := range g.plain {
		if err := p.placeFile(ctx, s, first); err != nil {
			return withDataSet(s, err)
		}
		if first == nil {
			first = &g.plain[i]
		}
		p.progress.addPlaced()
	}
	return p.unpackAll(ctx, g, first)
}

// awaitGroup waits until another pod has brought a group.
func (p *puller) awaitGroup(ctx context.Context, g objectGroup) error {
	for _, s := range g.sets() {
		for wait := (control.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}); !p.isComplete(s); {
			if !control.Sleep(ctx, wait.Next()) {
				return context.Cause(ctx)
			}
		}
		p.progress.addPlaced()
	}
	return nil
}

// isComplete reports whether a data set is in its place, after another pod has verified it.
func (p *puller) isComplete(s dataSet) bool {
	if s.Unpack {
		return p.isUnpacked(s)
	}
	info, err := os.Lstat(p.setPath(s))
	return err == nil && info.Mode().IsRegular() && info.Size() == s.Size
}

// withDataSet adds the data set to an error.
func withDataSet(s dataSet, err error) error {
	own := new(pullError)
	if !errors.As(err, &own) {
		return err
	}
	return &pullError{Class: own.Class, Message: fmt.Sprintf("%s: %s", s.describe(), own.Message)}
}
