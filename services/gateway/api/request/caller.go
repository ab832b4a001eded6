// Package request reads what requests of several services of the API have: the caller, the owner and the namespace, the page of a list.
package request

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/metadata"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// CallerOf returns the user who makes a call: the first value of baiv1.UserMetadata that
// is not empty, decoded, or anonymous. Over HTTP the values come from a header; gRPC and
// HTTP handlers both use this rule.
func CallerOf(users []string) string {
	return cmp.Or(decodeUser(cmp.Or(users...)), "anonymous")
}

// decodeUser returns the name that a client has percent-encoded. A text that is not the
// encoding of a printable name is the name itself.
func decodeUser(text string) string {
	name, err := url.PathUnescape(text)
	if err != nil || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	return name
}

// Caller returns the user who makes a gRPC call.
func Caller(ctx context.Context) string {
	return CallerOf(metadata.ValueFromIncomingContext(ctx, baiv1.UserMetadata))
}

// Owner returns the owner that a request names, or the caller if the request names
// none.
func Owner(ctx context.Context, req interface{ GetOwner() string }) string {
	return cmp.Or(req.GetOwner(), Caller(ctx))
}

// Namespace returns the team that a request names, or the default team if the request
// names none.
func Namespace(req interface{ GetNamespace() string }) string {
	return cmp.Or(req.GetNamespace(), "default")
}
