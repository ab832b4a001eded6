package blob

// Pieces returns how large the pieces of an object are, and how many are on their
// way at once.
func Pieces(size int64) (bytes, once int) { return pieces(size) }
