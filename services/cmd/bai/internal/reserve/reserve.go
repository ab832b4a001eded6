// Package reserve reserves disk space for the platform in its data folder, and refuses
// runs and results while the disk is full.
package reserve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// reserveFile is a file in the data folder that reserves space for the platform's own
// writes. It is deleted when the disk is full, and created again when there is enough
// space.
const reserveFile = "reserve"

// diskCheckInterval is the time between two checks of the disk.
const diskCheckInterval = time.Second

// Monitor watches the disk of a data folder.
type Monitor struct {
	Dir *datadir.Dir
	Log *zap.Logger
}

// measure returns the state of the disk.
func (d Monitor) measure() (pod.Disk, error) {
	free, all, err := diskSpace(d.Dir.Path)
	if err != nil {
		return pod.Disk{}, fmt.Errorf("look for free space in %s: %w", d.Dir.Path, err)
	}
	info, err := os.Lstat(d.Dir.Join(reserveFile))
	held := err == nil && info.Size() == pod.FloorsOf(all).Reserve // a smaller file does not count
	return pod.Disk{Free: free, Total: all, ReserveHeld: held}, nil
}

// Check returns an error while the disk is full.
func (d Monitor) Check(context.Context) error {
	disk, err := d.measure()
	if err != nil {
		return err
	}
	if problem := disk.ProblemMessage(d.Dir.Path); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// RefusalReason returns the reason why runs are refused now. It is empty if they are
// accepted, or if the disk cannot be measured.
func (d Monitor) RefusalReason() string {
	disk, err := d.measure()
	if err != nil || disk.AcceptsRuns() {
		return ""
	}
	return disk.RefusalMessage(d.Dir.Path)
}

// OutputReserve returns the number of bytes of the disk that the output of benchmarks
// must leave free.
func (d Monitor) OutputReserve() int64 {
	disk, err := d.measure()
	if err != nil {
		return 0
	}
	return pod.FloorsOf(disk.Total).Output
}

// Prepare deletes the reserve if the disk is so full that nothing could be opened. It
// also removes the temporary file of a writeReserve that was killed.
func (d Monitor) Prepare() error {
	if err := os.Remove(d.Dir.Join(reserveFile + ".new")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what is left of the disk's reserve: %w", err)
	}
	disk, err := d.measure()
	if err != nil || !disk.NeedsReserve(disk.Free) {
		return nil //nolint:nilerr // without a measurement, the reserve stays
	}
	if err := os.Remove(d.Dir.Join(reserveFile)); err != nil {
		return fmt.Errorf("give up the reserve of a disk that is full: %w", err)
	}
	return nil
}

// Run maintains the reserve. It logs once when the disk becomes full and once when it
// has space again.
func (d Monitor) Run(ctx context.Context) error {
	tick := time.NewTicker(diskCheckInterval)
	defer tick.Stop()
	full, failed, before := false, false, int64(math.MaxInt64)
	for {
		disk, err := d.measure()
		if err == nil {
			err = d.keepReserve(disk, before)
			before = disk.Free
		}
		if err != nil && !failed {
			d.Log.Warn("the reserve of the disk cannot be kept", zap.Error(err))
		}
		failed = err != nil
		if problem := disk.ProblemMessage(d.Dir.Path); problem != "" && !full {
			d.Log.Warn(problem)
			full = true
		} else if problem == "" && full {
			d.Log.Info("the platform's disk has room again", zap.String("free", pod.FormatSize(disk.Free)))
			full = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// keepReserve creates or deletes the reserve, given the free space of the last check.
func (d Monitor) keepReserve(disk pod.Disk, before int64) error {
	path := d.Dir.Join(reserveFile)
	switch {
	case disk.NeedsReserve(before):
		d.Log.Warn("the disk is full: the platform uses its reserve", zap.String("free", pod.FormatSize(disk.Free)))
		return os.Remove(path)
	case disk.CanReserve():
		return writeReserve(path, pod.FloorsOf(disk.Total).Reserve)
	}
	return nil
}

// writeReserve creates a file of some size atomically. If the space cannot be allocated
// without writing, it writes random bytes, since a compressing file system would
// reserve no space for zeros.
func writeReserve(path string, size int64) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the data folder
	if err != nil {
		return err
	}
	if err = allocate(f, size); errors.Is(err, errors.ErrUnsupported) {
		_, err = io.CopyN(f, rand.Reader, size)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err == nil {
		return nil
	}
	if rest := os.Remove(temp); rest != nil && !errors.Is(rest, fs.ErrNotExist) {
		err = errors.Join(err, rest)
	}
	return err
}

// Store is a store that refuses results while the disk is full, so that their writers
// wait.
type Store struct {
	store.Docs

	Next resultStore
	Disk Monitor
}

// resultStore stores samples and lines.
type resultStore interface {
	AppendSamples(ctx context.Context, batches []store.Samples) error
	AppendLines(ctx context.Context, batches []store.Lines) error
}

// AppendSamples implements index.Store.
func (r Store) AppendSamples(ctx context.Context, batches []store.Samples) error {
	if err := r.checkFull(); err != nil {
		return err
	}
	return r.Next.AppendSamples(ctx, batches)
}

// AppendLines implements index.Store.
func (r Store) AppendLines(ctx context.Context, batches []store.Lines) error {
	if err := r.checkFull(); err != nil {
		return err
	}
	return r.Next.AppendLines(ctx, batches)
}

func (r Store) checkFull() error {
	disk, err := r.Disk.measure()
	if err != nil || disk.AcceptsResults() {
		return nil //nolint:nilerr // without a measurement, results are accepted
	}
	return fmt.Errorf("%s: %w", disk.ProblemMessage(r.Disk.Dir.Path), syscall.ENOSPC)
}
