package api

import "google.golang.org/protobuf/proto"

// streamPage is how many lines or samples are read at once, where they are small.
const streamPage = 1000

// pageCursor is where a stream is in what a run wrote.
type pageCursor struct {
	cursor string
	limit  int // of the next page: what is likely to fit into a response
}

// readPage reads what comes after at, as much as fits into a response, moves at
// there, and reports whether there may be more.
func readPage[T any, R proto.Message](at *pageCursor, read func(cursor string, limit int) ([]T, string, error), response func(page []T, cursor string) R) (R, bool, error) {
	for {
		items, next, err := read(at.cursor, at.limit)
		resp := response(items, next)
		if err != nil {
			return resp, false, err
		}
		if proto.Size(resp) > maxResponse && at.limit > 1 {
			at.limit = max(at.limit/2, 1) // and read again
			continue
		}
		more := len(items) == at.limit
		at.cursor, at.limit = next, min(2*at.limit, streamPage)
		return resp, more, nil
	}
}
