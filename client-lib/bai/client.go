// Package bai is a client of the platform: it submits runs, follows them and reads their
// results.
//
// A run is named by its ID, or by the name that its owner gave it. Calls are repeated
// while the platform cannot be reached, up to Settings.RetryTimeout. Streams resume after
// a broken connection, so that each change, line and sample is seen once. Every method
// may be called from any goroutine.
package bai

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const (
	// DefaultTarget is the default address of `bai standalone`.
	DefaultTarget = "127.0.0.1:7070"

	// Revision is the revision of the API that this client understands, from 1.
	Revision = baiv1.Revision

	connectTimeout = 2 * time.Second
	maxMessage     = 16 << 20
)

// Settings change how a client behaves. The zero value works.
type Settings struct {
	// User is the caller, sent as bai-user metadata, percent-encoded where it is not
	// ASCII; empty means an anonymous caller.
	User string
	// Owner submits runs, and names are resolved among the owner's runs; empty means the
	// caller, as far as the platform can tell.
	Owner string
	// RetryTimeout is how long a call is repeated while the platform cannot be
	// reached; 0 means 30 s. Watch and a following Logs have no such end once
	// they were connected: they go on until their context ends.
	RetryTimeout time.Duration
	// Answer is how long one call waits for its answer; 0 means 30 s.
	Answer time.Duration
	// Pause is the wait before the first repetition; 0 means 100 ms. It grows to
	// 5 s, and begins anew once something was received.
	Pause time.Duration
	// Lost, if not nil, is called with each failure that will be retried. It may be
	// called from any goroutine.
	Lost func(error)
	// Found, if not nil, is called when the platform answers again after Lost. It may be
	// called from any goroutine.
	Found func()
	// Connection has further options of the connection, such as credentials;
	// none means one that is neither encrypted nor authenticated.
	Connection []grpc.DialOption
}

// Client is a client of one platform. Close it after use.
type Client struct {
	target      string
	settings    Settings
	conn        *grpc.ClientConn
	rpc         baiv1.RunServiceClient
	descriptors baiv1.DescriptorServiceClient
	scripts     baiv1.ScriptServiceClient
	results     baiv1.ResultServiceClient
	data        baiv1.DataServiceClient
	transfer    baiv1.TransferServiceClient

	schedules      baiv1.ScheduleServiceClient
	sets           baiv1.SetServiceClient
	analyses       baiv1.AnalysisServiceClient
	baselines      baiv1.BaselineServiceClient
	alarms         baiv1.AlarmServiceClient
	serverRevision atomic.Int32 // the platform's revision, once it has answered; 0 before
}

// Dial returns a client, with the default settings, of the platform at target:
// HOST:PORT, or unix:PATH. It connects when it is first used.
func Dial(target string) (*Client, error) { return Settings{}.Dial(target) }

// Dial is like the function Dial with other settings.
func (s Settings) Dial(target string) (*Client, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	s.RetryTimeout = orElse(s.RetryTimeout, 30*time.Second)
	s.Answer = orElse(s.Answer, 30*time.Second)
	s.Pause = orElse(s.Pause, 100*time.Millisecond)
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: s.Pause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: connectTimeout,
		}),
		// A platform that is gone without a word, or stands still, is noticed.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
	}
	s.User = url.PathEscape(s.User)
	options = append(options, grpc.WithUnaryInterceptor(s.call), grpc.WithStreamInterceptor(s.stream))
	conn, err := grpc.NewClient(target, append(options, s.Connection...)...)
	if err != nil {
		return nil, fmt.Errorf("use platform %q: %w", target, err)
	}
	return &Client{
		target: target, settings: s, conn: conn,
		rpc: baiv1.NewRunServiceClient(conn), descriptors: baiv1.NewDescriptorServiceClient(conn),
		scripts: baiv1.NewScriptServiceClient(conn), results: baiv1.NewResultServiceClient(conn), data: baiv1.NewDataServiceClient(conn),
		transfer: baiv1.NewTransferServiceClient(conn), schedules: baiv1.NewScheduleServiceClient(conn),
		sets:     baiv1.NewSetServiceClient(conn),
		analyses: baiv1.NewAnalysisServiceClient(conn), baselines: baiv1.NewBaselineServiceClient(conn),
		alarms: baiv1.NewAlarmServiceClient(conn),
	}, nil
}

// withUser is ctx with the caller's metadata.
func (s Settings) withUser(ctx context.Context) context.Context {
	if s.User == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, baiv1.UserMetadata, s.User)
}

func (s Settings) call(ctx context.Context, method string, req, res any, conn *grpc.ClientConn, next grpc.UnaryInvoker,
	o ...grpc.CallOption,
) error {
	return next(s.withUser(ctx), method, req, res, conn, o...)
}

func (s Settings) stream( //nolint:ireturn // gRPC's own
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, o ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return next(s.withUser(ctx), desc, conn, method, o...)
}

// Close closes the connection. Calls and streams that are under way fail.
func (c *Client) Close() error { return c.conn.Close() }

func checkTarget(target string) error {
	if strings.HasPrefix(target, "unix:") {
		return nil
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(target, "dns:///"), "passthrough:///"))
	if err != nil || port == "" || strings.Contains(host, "/") {
		return fmt.Errorf("platform %q: the address must be HOST:PORT", target)
	}
	return nil
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}
