//go:build unix

package puller

import "syscall"

// diskSpaceOf returns the space of a volume, if it can be read. Space that only root may fill counts as taken.
func diskSpaceOf(dir string) (s diskSpace, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return diskSpace{}, false
	}
	block, reserved := int64(st.Bsize), int64(st.Bfree)-int64(st.Bavail)                                 //nolint:gosec,unconvert // the types differ by system
	return diskSpace{free: int64(st.Bavail) * block, total: (int64(st.Blocks) - reserved) * block}, true //nolint:gosec // the same
}
