//go:build unix

package reserve

import "syscall"

// diskSpace returns the free bytes and all bytes of a folder's disk, as far as ordinary
// users may use them.
func diskSpace(dir string) (free, all int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := int64(st.Bsize)                                          //nolint:unconvert // the types differ by system
	free = int64(st.Bavail) * block                                   //nolint:gosec // likewise
	return free, (int64(st.Blocks)-int64(st.Bfree))*block + free, nil //nolint:gosec // likewise
}
