package prefilter

// Automaton returns a filter that is an automaton, whatever text the pattern needs. Made is false if there is none.
func Automaton(pattern string) (f Filter, made bool) {
	a := newAutomaton(pattern)
	return Filter{automaton: a}, a != nil
}
