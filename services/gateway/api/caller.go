package api

import (
	"cmp"
	"context"

	"google.golang.org/grpc/metadata"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Caller returns the user who calls, by the values that a call has of
// baiv1.UserMetadata, which over HTTP is a header: the first that is not empty, or
// anonymous. It is the only place that decides so, for gRPC and for HTTP.
func Caller(users []string) string {
	return cmp.Or(cmp.Or(users...), "anonymous")
}

// caller returns the user who makes a gRPC call.
func caller(ctx context.Context) string {
	return Caller(metadata.ValueFromIncomingContext(ctx, baiv1.UserMetadata))
}

// owner returns the owner that a request names, and the caller where it names none.
func owner(ctx context.Context, req interface{ GetOwner() string }) string {
	return cmp.Or(req.GetOwner(), caller(ctx))
}

// namespaceOf returns the team that a request names, and the default one where it
// names none.
func namespaceOf(req interface{ GetNamespace() string }) string {
	return cmp.Or(req.GetNamespace(), "default")
}
