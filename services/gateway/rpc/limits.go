package rpc

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// retryAfter is the time after which a refused client may try again.
const retryAfter = 5 * time.Second

// limiter limits how many calls are open at a time, in total and for each client.
type limiter struct {
	resource, setting     string
	limit, limitPerClient int

	mu        sync.Mutex
	count     int
	perClient map[string]int
}

func newLimiter(resource, setting string, limit, limitPerClient int) *limiter {
	return &limiter{resource: resource, setting: setting, limit: limit, limitPerClient: limitPerClient, perClient: map[string]int{}}
}

// acquire counts one more call of a client. Above a limit, the error is
// RESOURCE_EXHAUSTED, with the time after which to try again. The caller calls release
// once, when the call ends.
func (l *limiter) acquire(client string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.count >= l.limit:
		return nil, tooMany(fmt.Sprintf("the gateway serves %d %s already, as many as it may (%s)",
			l.count, l.resource, l.setting))
	case l.perClient[client] >= l.limitPerClient:
		return nil, tooMany(fmt.Sprintf("the gateway serves %d %s of this client already, as many as one may have (%s)",
			l.perClient[client], l.resource, l.setting))
	}
	l.count++
	l.perClient[client]++
	return func() { l.release(client) }, nil
}

func (l *limiter) release(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	if l.perClient[client]--; l.perClient[client] == 0 {
		delete(l.perClient, client)
	}
}

func tooMany(reason string) error {
	return exhausted(fmt.Sprintf("%s: try again in %.0f s", reason, retryAfter.Seconds()), retryAfter)
}

// fullRetryAfter is the time after which a client may try again that was refused because
// the storage is full.
const fullRetryAfter = time.Minute

// StorageFull refuses a request for which there is no room until someone frees some.
func StorageFull(reason string) error { return exhausted(reason, fullRetryAfter) }

// exhausted returns RESOURCE_EXHAUSTED for a reason that passes.
func exhausted(reason string, after time.Duration) error {
	info := &errdetails.RetryInfo{RetryDelay: durationpb.New(after)}
	return statusWithDetails(codes.ResourceExhausted, reason, protoadapt.MessageV1Of(info))
}

// clientHost returns the host that a call comes from. For calls over HTTP, it is the
// last entry of x-forwarded-for, which the gateway itself adds.
func clientHost(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	if host, _, err := net.SplitHostPort(p.Addr.String()); err == nil {
		return host
	}
	forwarded := strings.Join(metadata.ValueFromIncomingContext(ctx, "x-forwarded-for"), ",")
	return strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:])
}
