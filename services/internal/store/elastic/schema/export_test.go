package schema

// Mapping returns the mapping of an index.
func Mapping(i Index) map[string]any { return i.mapping() }
