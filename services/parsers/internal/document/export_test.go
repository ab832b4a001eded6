package document

// ValueEnd is valueEnd, for its fuzz test.
func ValueEnd(text []byte) (end int, ok bool) { return valueEnd(text) }

// WithoutInfinities is withoutInfinities, for its fuzz test.
func WithoutInfinities(text []byte) (finite []byte, changed bool) { return withoutInfinities(text) }

// AllWithin is allWithin, for tests of its limit.
func AllWithin(text []byte, most int, see func(document []byte)) (cut int) {
	return allWithin(text, most, see)
}
