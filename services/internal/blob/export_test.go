package blob

// UploadParts returns how large the pieces of an object are, and how many are on their
// way at once.
func UploadParts(size int64) (partSize, concurrency int) { return uploadParts(size) }
