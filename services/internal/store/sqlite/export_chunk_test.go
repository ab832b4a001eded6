package sqlite

// What chunks are made with.
var (
	Pack    = pack
	Unpack  = unpack
	Merge   = merge
	Ordered = ordered
)
