package api

import (
	"cmp"

	"google.golang.org/protobuf/proto"
)

// Sizes of the pages of lists.
const (
	defaultPageSize = 50
	maxPageSize     = 1000
)

// pageSize returns the number of items that a page of a list has.
func pageSize(req interface{ GetPageSize() int32 }) (int, error) {
	if req.GetPageSize() < 0 {
		return 0, invalidArgument("page_size", "must be 0 or more", "leave it out")
	}
	return min(cmp.Or(int(req.GetPageSize()), defaultPageSize), maxPageSize), nil
}

// invalidPageToken refuses a page token that this server did not give, for a list
// that the text names.
func invalidPageToken(list string) error {
	return invalidArgument("page_token", "is not one that this server gave"+list, "leave it empty for the first page")
}

// streamPage is the number of lines or samples that are read at once, where they are small.
const streamPage = 1000

// pageCursor is the place of a stream in the lines or samples of a run.
type pageCursor struct {
	cursor string
	limit  int // of the next page, which is likely to fit into a response
}

// readPage reads the items after at, as many as fit into a response, moves at
// behind them, and reports whether there may be more.
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
