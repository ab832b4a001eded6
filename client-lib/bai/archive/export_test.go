package archive

import "io"

// PackedBounded is Packed with another bound of what may unpack to very much.
func PackedBounded(open func() (io.ReadCloser, error), bomb int64) Source {
	return tarSource{open, bomb}
}
