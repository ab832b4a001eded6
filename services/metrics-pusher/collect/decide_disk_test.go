package collect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/spool"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
)

func TestAFullDiskIsToldOnceAndOnceWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	const floor = 64 << 20
	type look struct {
		after time.Duration
		free  int64
	}
	tests := map[string]struct {
		looks []look
		want  []string // beginnings of the statuses
	}{
		"nothing where there is room":               {[]look{{0, 1 << 30}, {time.Hour, 1 << 30}}, nil},
		"nothing of a moment":                       {[]look{{0, floor - 1}, {time.Second, 1 << 30}, {time.Minute, floor - 1}}, nil},
		"what stays full, once":                     {[]look{{0, floor - 1}, {2 * time.Second, floor - 2}, {time.Hour, floor / 2}}, []string{"full"}},
		"nothing at the floor":                      {[]look{{0, floor}, {2 * time.Second, floor}}, nil},
		"no room where there is only a little more": {[]look{{0, 0}, {2 * time.Second, 0}, {time.Minute, floor + floor/8}, {time.Hour, floor + floor/8}}, []string{"full"}},
		"that it has room again":                    {[]look{{0, 0}, {2 * time.Second, 0}, {time.Minute, 2 * floor}, {time.Minute + 2*time.Second, 2 * floor}, {time.Hour, 2 * floor}}, []string{"full", "room"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin, s := time.Unix(1000, 0), diskState{}
			var got []string
			for _, l := range tt.looks {
				var status *event.Status
				s, status = s.next(l.free, floor, begin.Add(l.after))
				got = append(got, describeStatus(status)...)
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("said %q, want %q", got, tt.want)
			}
		})
	}
}

// describeStatus returns the message of a status about the disk.
func describeStatus(status *event.Status) []string {
	switch {
	case status == nil:
		return nil
	case status.Reason == event.NoSpace && strings.Contains(status.Message, "the platform's disk is full"):
		return []string{"full"}
	}
	return []string{"room"}
}

func TestNothingIsShippedToADiskThatIsFull(t *testing.T) {
	t.Parallel()
	looks := 0
	r := &diskMonitor{
		floor: 64, publish: func(context.Context, string, event.Status) error { return nil }, stopping: func() bool { return false }, log: zap.NewNop(),
		free: func() (int64, error) { looks++; return map[bool]int64{false: 63, true: 64}[looks > 3], nil },
	}
	if err := r.wait(t.Context()); err != nil || looks != 4 {
		t.Errorf("waited for %d looks: %v", looks, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	looks = 0
	if err := r.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("when its time was over it said %v", err)
	}
}

func TestAPodThatHasToEndWaitsForTheDiskNoLongerThanAMoment(t *testing.T) {
	t.Parallel()
	r := &diskMonitor{
		floor: 64, publish: func(context.Context, string, event.Status) error { return nil }, stopping: func() bool { return true }, log: zap.NewNop(),
		free: func() (int64, error) { return 0, nil }, drainTimeout: time.Millisecond,
	}
	for range 2 {
		if err := r.wait(t.Context()); !errors.Is(err, errDiskFull) {
			t.Errorf("it said %v", err)
		}
	}
}

func TestWhatComesOverPipesAndPortsIsNotTakenOntoAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := volume.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	free := int64(47)
	r := &diskMonitor{floor: 64, free: func() (int64, error) { return free, nil }}
	series := spool.NewSeriesSet(0, zap.NewNop())
	if err := series.Load(v, false); err != nil {
		t.Fatal(err)
	}
	s, err := spool.Open(v, spool.Settings{File: pod.OTLP, Key: "output.otlp", Full: r.checkFull}, series, &spool.Losses{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	sample := []event.Sample{{Name: "x", Value: new(1.0), Time: 1}}
	if err := s.Append(slices.Clone(sample)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	free = 48
	if err := s.Append(slices.Clone(sample)); err != nil {
		t.Errorf("with room: %v", err)
	}
}
