package grid

// A Budget is the work that reading some sweeps may take together. A nil Budget does not end. Only one goroutine may use it.
type Budget struct {
	bytes   int // of texts that are read
	matches int // of cells that are compared with rows of exclude
	spent   bool
}

// NewBudget returns a budget of the reading of so many bytes of text, and of the comparison of so many cells with a row of exclude.
func NewBudget(bytes, matches int) *Budget { return &Budget{bytes: bytes, matches: matches} }

// Spent reports whether something was refused.
func (b *Budget) Spent() bool { return b != nil && b.spent }

// Read takes the reading of some bytes, and reports whether the budget had that.
func (b *Budget) Read(bytes int) bool { return b == nil || b.take(&b.bytes, bytes) }

// match is Read for comparisons.
func (b *Budget) match(cells int) bool { return b == nil || b.take(&b.matches, cells) }

func (b *Budget) take(from *int, n int) bool {
	if n > *from {
		b.spent = true
		return false
	}
	*from -= n
	return true
}

// readable is how many bytes may be read, most at most.
func (b *Budget) readable(most int) int {
	if b == nil {
		return most
	}
	return min(b.bytes, most)
}
