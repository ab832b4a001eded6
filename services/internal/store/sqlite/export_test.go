package sqlite

// EmptyLogFrom has the write-ahead log emptied once it has so many bytes.
func (s *Store) EmptyLogFrom(size int64) { s.logLimit.Store(size) }

// FirstSchema returns what made the files of the first version, and the mark
// that they carry.
func FirstSchema() (schemaOf string, applicationID int) { return schema()[0], application }

// What chunks are made with.
var (
	Pack    = pack
	Unpack  = unpack
	Merge   = merge
	Ordered = ordered
)
