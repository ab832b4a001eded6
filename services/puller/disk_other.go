//go:build !unix

package puller

// free returns how many bytes a volume has left, where that can be known.
func free(string) (bytes int64, known bool) { return 0, false }
