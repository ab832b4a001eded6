//go:build unix

package puller

import "syscall"

// spaceOf returns how much a volume holds, where that can be known. What only the
// system's own user may fill counts as taken.
func spaceOf(dir string) (s space, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return space{}, false
	}
	block, kept := int64(st.Bsize), int64(st.Bfree)-int64(st.Bavail)                             //nolint:gosec,unconvert // the types differ by system
	return space{free: int64(st.Bavail) * block, total: (int64(st.Blocks) - kept) * block}, true //nolint:gosec // the same
}
