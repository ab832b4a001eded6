package api

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// Sizes of the pages of lists.
const (
	defaultPageSize = 50
	maxPageSize     = 1000
)

// pageSize returns the number of items in a page of a list.
func pageSize(req interface{ GetPageSize() int32 }) (int, error) {
	if req.GetPageSize() < 0 {
		return 0, rpc.InvalidArgument("page_size", "must be 0 or more", "leave it out")
	}
	return min(cmp.Or(int(req.GetPageSize()), defaultPageSize), maxPageSize), nil
}

// invalidPageToken refuses a page token that this server did not issue; list is
// appended to the message and names the list.
func invalidPageToken(list string) error {
	return rpc.InvalidArgument("page_token", "is not one that this server gave"+list, "leave it empty for the first page")
}

// ownedRequest asks for a page of a list of documents, in the order of their IDs.
type ownedRequest interface {
	GetPageSize() int32
	GetPageToken() string
	GetOwner() string
	GetNamespace() string
}

// idPage returns the number of documents in a page, and the ID after which it begins.
func idPage(req ownedRequest) (after string, limit int, err error) {
	if limit, err = pageSize(req); err != nil {
		return "", 0, err
	}
	if after = req.GetPageToken(); after != "" && !submit.IsRunID(after) {
		return "", 0, invalidPageToken("")
	}
	return after, limit, nil
}

// wantsOwned reports whether a list is to have the documents of an owner and a namespace.
func wantsOwned(req ownedRequest, owner, namespace string) bool {
	return (req.GetOwner() == "" || owner == req.GetOwner()) && (req.GetNamespace() == "" || namespace == req.GetNamespace())
}

// streamPage is the number of lines or samples read at once, if they are small.
const streamPage = 1000

// pageCursor is the position of a stream in the lines or samples of a run.
type pageCursor struct {
	cursor string
	limit  int // number of items of the next page, chosen so that the page probably fits into a response
}

// readPage reads as many items after at as fit into a response, moves at behind them,
// and reports whether more may follow.
func readPage[T any, R proto.Message](at *pageCursor, read func(cursor string, limit int) ([]T, string, error), response func(page []T, cursor string) R) (R, bool, error) {
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
