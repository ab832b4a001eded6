//go:build !unix

package puller

// spaceOf returns how much a volume holds, where that can be known.
func spaceOf(string) (s space, known bool) { return space{}, false }
