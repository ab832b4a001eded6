package sqlite

// EmptyLogFrom has the write-ahead log emptied once it has so many bytes.
func (s *Store) EmptyLogFrom(size int64) { s.logLimit.Store(size) }
