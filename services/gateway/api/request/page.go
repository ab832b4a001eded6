package request

import (
	"cmp"

	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// Sizes of the pages of lists.
const (
	defaultPageSize = 50
	maxPageSize     = 1000
)

// PageSize returns the number of items in a page of a list.
func PageSize(req interface{ GetPageSize() int32 }) (int, error) {
	if req.GetPageSize() < 0 {
		return 0, rpc.InvalidArgument("page_size", "must be 0 or more", "leave it out")
	}
	return min(cmp.Or(int(req.GetPageSize()), defaultPageSize), maxPageSize), nil
}

// InvalidPageToken refuses a page token that this server did not issue; list is
// appended to the message and names the list.
func InvalidPageToken(list string) error {
	return rpc.InvalidArgument("page_token", "is not one that this server gave"+list, "leave it empty for the first page")
}

// ownedRequest asks for a page of a list of documents, in the order of their IDs.
type ownedRequest interface {
	GetPageSize() int32
	GetPageToken() string
	GetOwner() string
	GetNamespace() string
}

// IDPage returns the number of documents in a page, and the ID after which it begins.
func IDPage(req ownedRequest) (after string, limit int, err error) {
	if limit, err = PageSize(req); err != nil {
		return "", 0, err
	}
	if after = req.GetPageToken(); after != "" && !submit.IsRunID(after) {
		return "", 0, InvalidPageToken("")
	}
	return after, limit, nil
}

// Wants reports whether a list is to have the documents of an owner and a namespace.
func Wants(req ownedRequest, owner, namespace string) bool {
	return (req.GetOwner() == "" || owner == req.GetOwner()) && (req.GetNamespace() == "" || namespace == req.GetNamespace())
}
