package api

import (
	"cmp"
	"context"

	"google.golang.org/grpc/metadata"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Caller returns the user who makes a call: the first value of baiv1.UserMetadata that
// is not empty, or anonymous. Over HTTP the values come from a header; gRPC and HTTP
// handlers both use this rule.
func Caller(users []string) string {
	return cmp.Or(cmp.Or(users...), "anonymous")
}

// caller returns the user who makes a gRPC call.
func caller(ctx context.Context) string {
	return Caller(metadata.ValueFromIncomingContext(ctx, baiv1.UserMetadata))
}

// owner returns the owner that a request names, or the caller if the request names
// none.
func owner(ctx context.Context, req interface{ GetOwner() string }) string {
	return cmp.Or(req.GetOwner(), caller(ctx))
}

// namespaceOf returns the team that a request names, or the default team if the request
// names none.
func namespaceOf(req interface{ GetNamespace() string }) string {
	return cmp.Or(req.GetNamespace(), "default")
}
