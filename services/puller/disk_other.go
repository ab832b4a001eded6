//go:build !unix

package puller

// diskSpaceOf is not supported.
func diskSpaceOf(string) (s diskSpace, known bool) { return diskSpace{}, false }
