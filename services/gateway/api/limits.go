package api

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

// retryAfter is when a client that was refused for the number of others may try
// again.
const retryAfter = 5 * time.Second

// limiter bounds how many of something there are at a time, of all clients and of
// each.
type limiter struct {
	what, setting string
	all, each     int

	mu    sync.Mutex
	count int
	by    map[string]int
}

func newLimiter(what, setting string, all, each int) *limiter {
	return &limiter{what: what, setting: setting, all: all, each: each, by: map[string]int{}}
}

// enter counts one more of a client. It says RESOURCE_EXHAUSTED, with the time
// after which to try again, for one too many. Leave ends it, and is called once.
func (l *limiter) enter(client string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.count >= l.all:
		return nil, exhausted(fmt.Sprintf("the gateway serves %d %s already, as many as it may (%s)", l.count, l.what, l.setting))
	case l.by[client] >= l.each:
		return nil, exhausted(fmt.Sprintf("the gateway serves %d %s of this client already, as many as one may have (%s)", l.by[client], l.what, l.setting))
	}
	l.count++
	l.by[client]++
	return func() { l.leave(client) }, nil
}

func (l *limiter) leave(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	if l.by[client]--; l.by[client] == 0 {
		delete(l.by, client)
	}
}

func exhausted(why string) error {
	return with(codes.ResourceExhausted, fmt.Sprintf("%s: try again in %.0f s", why, retryAfter.Seconds()),
		protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}))
}

// clientOf is the host that a call comes from. What came by HTTP says it in a
// header that the gateway itself has written last.
func clientOf(ctx context.Context) string {
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
