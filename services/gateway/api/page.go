package api

import (
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/services/gateway/rpc"
)

// streamPage is the number of lines or samples read at once, if they are small.
const streamPage = 1000

// pageCursor is the position of a stream in the lines or samples of a run.
type pageCursor struct {
	cursor string
	limit  int // number of items of the next page, chosen so that the page probably fits into a response
}

// readPage reads as many items after at as fit into a response, moves at behind them,
// and reports whether more may follow.
func readPage[T any, R proto.Message](
	at *pageCursor, read func(cursor string, limit int) ([]T, string, error), response func(page []T, cursor string) R,
) (R, bool, error) {
	for {
		items, next, err := read(at.cursor, at.limit)
		resp := response(items, next)
		if err != nil {
			return resp, false, err
		}
		if proto.Size(resp) > rpc.MaxResponse && at.limit > 1 {
			at.limit = max(at.limit/2, 1) // read the page again
			continue
		}
		more := len(items) == at.limit
		at.cursor, at.limit = next, min(2*at.limit, streamPage)
		return resp, more, nil
	}
}
