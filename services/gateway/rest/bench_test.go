package rest_test

import (
	"context"
	"net"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/rest"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// BenchmarkGRPC measures a call over gRPC, on a port of its own and on a port that is
// shared with HTTP.
func BenchmarkGRPC(b *testing.B) {
	b.Run("own port", func(b *testing.B) {
		call(b, func(l net.Listener, s *api.Server) map[string]service.Runnable {
			return map[string]service.Runnable{"api": s.Serve(l)}
		})
	})
	b.Run("shared port", func(b *testing.B) {
		call(b, func(l net.Listener, s *api.Server) map[string]service.Runnable {
			http2, others, split := rest.Split(rest.Settings{}, l)
			inside := rest.NewInProcessListener()
			return map[string]service.Runnable{"api": s.Serve(http2, inside), "split": split, "rest": rest.Serve(rest.Settings{}, rest.Deps{API: inside, Log: zap.NewNop()}, others)}
		})
	})
}

func call(b *testing.B, parts func(l net.Listener, s *api.Server) map[string]service.Runnable) {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	all := parts(l, api.New(api.Settings{}, api.Deps{Log: zap.NewNop()}))
	go func() { done <- run.All(ctx, all) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	client := baiv1.NewRunServiceClient(conn)
	for b.Loop() {
		if _, err := client.GetVersion(b.Context(), &baiv1.GetVersionRequest{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		b.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
