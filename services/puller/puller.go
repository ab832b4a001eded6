// Package puller brings a run's data from the object store to the disk of its
// pod, before the benchmark starts there. It is part of a small program, so it
// reads the object store with nothing but files and HTTP.
//
// File decide.go holds the rules; placement.go, store.go and unpack.go carry them
// out.
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

// Read reads what the puller is told, from the folder where the pod's Secret is
// mounted; pod.SecretDir if that is "".
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

// Run brings data set n to data/<n> of the volume that is mounted at dir,
// pod.Dir if that is "", and checks that it is what was fetched. A data set is
// there wholly or not at all; what is there already stays. So Run can be
// repeated after it was killed, but not run twice at once. What is shared it
// brings to shared/<n> or, in all pods but the first, waits for.
//
// Say, if not nil, is told about once a second how far it has come. It is
// called by one goroutine at a time and holds up the progress while it takes.
//
// The error is an *Error, or ctx's.
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

// WriteTermination leaves the last words about how Run ended in the file at path,
// pod.TerminationMessage if that is "", and returns the exit code that says so.
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
	dir       string // of what is this pod's own
	sharedDir string // of what is shared
	cfg       pod.Pull
	store     store
	progress  *progress
	volumes   [2]*volume // this pod's own, and what is shared
}

// sizeVolumes says of each volume what belongs there.
func (p *puller) sizeVolumes(all []objectGroup) {
	p.volumes = [2]*volume{{dir: p.dir, reserveSetting: p.cfg.Reserve}, {dir: p.sharedDir, shared: true}}
	for _, v := range p.volumes {
		v.objectBytes = neededBytes(onVolume(all, v.shared), func(dataSet) bool { return false })
	}
}

// volume is where data sets are brought to, those that are shared or the others.
func (p *puller) volume(shared bool) *volume {
	if shared {
		return p.volumes[1]
	}
	return p.volumes[0]
}

// removeLeftovers removes what a puller that was killed has left half done.
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

// cleanDir makes a folder for data, without what is half done.
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

// waitsForShared reports whether another pod brings what is shared.
func (p *puller) waitsForShared() bool { return p.cfg.Index > 0 }

// checkSpace says if a volume has too little space for what is to be brought to it. Of
// what lies on this machine already nobody can tell how much it will take.
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

// pullGroup brings one object to all places where it is wanted, and reads the store
// once for all of them.
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

// isComplete reports whether a data set is in its place, of which another pod has
// checked what it is.
func (p *puller) isComplete(s dataSet) bool {
	if s.Unpack {
		return p.isUnpacked(s)
	}
	info, err := os.Lstat(p.setPath(s))
	return err == nil && info.Mode().IsRegular() && info.Size() == s.Size
}

// withDataSet says which data set an error is about.
func withDataSet(s dataSet, err error) error {
	own := new(pullError)
	if !errors.As(err, &own) {
		return err
	}
	return &pullError{Class: own.Class, Message: fmt.Sprintf("%s: %s", s.describe(), own.Message)}
}
