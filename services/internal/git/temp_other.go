//go:build !unix

package git

import "os"

// temp makes a folder that belongs to this process until removeDir is called. On this
// system the folders of dead processes cannot be recognised.
func temp() (dir string, removeDir func() error, err error) {
	dir, err = os.MkdirTemp("", "bai-git-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// tempSpace checks no free space on this system.
type tempSpace struct{ dir string }

func (*tempSpace) reserve(int) error { return nil }
