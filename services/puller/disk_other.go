//go:build !unix

package puller

// diskSpaceOf returns how much a volume holds, where that can be known.
func diskSpaceOf(string) (s diskSpace, known bool) { return diskSpace{}, false }
