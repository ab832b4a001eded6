//go:build !unix

package git

import "os"

// temp makes a folder that is this process's until it is given back. Here
// nobody can tell those of processes that died.
func temp() (dir string, back func() error, err error) {
	dir, err = os.MkdirTemp("", "bai-git-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// spare is the room that there is for a folder. Here nobody can see it.
type spare struct{ dir string }

func (*spare) take(int) error { return nil }
