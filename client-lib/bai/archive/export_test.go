package archive

import "io"

// PackedBounded is Packed with another limit for the unpacked size.
func PackedBounded(open func() (io.ReadCloser, error), bomb int64) Source {
	return tarSource{open, bomb}
}
