//go:build unix

package reserve

import (
	"io/fs"
	"os"
	"testing"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestTheReserveIsGivenUpOnAFullDiskAndMadeAgainWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	d := Monitor{Dir: &datadir.Dir{Path: t.TempDir()}, Log: zap.NewNop()}
	const all = 1 << 20 // so that the reserve is small
	reserve := pod.FloorsOf(all).Reserve
	steps := []struct {
		rule string
		disk pod.Disk
		size int64 // size of the file; -1 for none

		before int64 // free space before
	}{
		{"there is room for it", pod.Disk{Free: all, Total: all}, reserve, 0},
		{"there is still room", pod.Disk{Free: all, Total: all, ReserveHeld: true}, reserve, 0},
		{"benchmarks have filled what is theirs", pod.Disk{Free: all / 5, Total: all, ReserveHeld: true}, reserve, 0},
		{"others fill the disk", pod.Disk{Free: 10, Total: all, ReserveHeld: true}, reserve, 11},
		{"others have filled the disk", pod.Disk{Free: 10, Total: all, ReserveHeld: true}, -1, 10},
		{"the platform uses it", pod.Disk{Free: reserve, Total: all}, -1, 0},
		{"there is room again", pod.Disk{Free: all / 2, Total: all}, reserve, 0},
	}
	for _, s := range steps {
		if err := d.keepReserve(s.disk, s.before); err != nil {
			t.Fatalf("%s: %v", s.rule, err)
		}
		size := int64(-1)
		info, err := os.Stat(d.Dir.Join(reserveFile))
		if err == nil {
			size = info.Size()
		}
		if size != s.size {
			t.Errorf("when %s the reserve has %d bytes, want %d", s.rule, size, s.size)
		}
	}
	left, err := fs.ReadDir(os.DirFS(d.Dir.Path), ".")
	if err != nil || len(left) != 1 {
		t.Errorf("there are %v (%v), want the reserve alone", left, err)
	}
}
