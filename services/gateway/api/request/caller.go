// Package request reads what requests of several services of the API have: the caller, the owner and the namespace, the page of a list.
package request

import (
	"cmp"
	"context"

	"google.golang.org/grpc/metadata"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// CallerOf returns the user who makes a call: the first value of baiv1.UserMetadata that
// is not empty, or anonymous. Over HTTP the values come from a header; gRPC and HTTP
// handlers both use this rule.
func CallerOf(users []string) string {
	return cmp.Or(cmp.Or(users...), "anonymous")
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
