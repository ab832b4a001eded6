//go:build !unix

package blob

import (
	"io"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// disk is the folder of a store of files. Here neither its free space nor the
// writers of its files can be seen, so nothing is checked and nothing removed.
type disk struct {
	dir     string
	reserve int64
}

func (disk) room(int64) error            { return nil }
func (disk) guard(w io.Writer) io.Writer { return w }
func (disk) clean() error                { return nil }
func (disk) space() (store.Space, error) { return store.Space{Free: -1, Total: -1}, nil }

func lock(func(any) bool) error { return nil }
