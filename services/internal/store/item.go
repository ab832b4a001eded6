package store

import "time"

// Item is an object of a bucket that is not ours, as its owner tells of it.
type Item struct {
	Key      string
	Size     int64
	Modified time.Time
	Tag      string // that of this content, opaque; of S3 its ETag, whether of one part or of several; empty where it has none
}
