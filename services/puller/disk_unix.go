//go:build unix

package puller

import "syscall"

// diskSpaceOf returns how much a volume holds, where that can be known. What only the
// system's own user may fill counts as taken.
func diskSpaceOf(dir string) (s diskSpace, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return diskSpace{}, false
	}
	block, reserved := int64(st.Bsize), int64(st.Bfree)-int64(st.Bavail)                                 //nolint:gosec,unconvert // the types differ by system
	return diskSpace{free: int64(st.Bavail) * block, total: (int64(st.Blocks) - reserved) * block}, true //nolint:gosec // the same
}
