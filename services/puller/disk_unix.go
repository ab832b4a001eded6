//go:build unix

package puller

import "syscall"

// free returns how many bytes a volume has left, where that can be known.
func free(dir string) (bytes int64, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:gosec,unconvert // the types differ by system
}
