package kube_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

func TestContract(t *testing.T) {
	t.Parallel()
	testCluster := testbed.Kubernetes(t)
	scope := testCluster.Namespace(t)
	clustertest.Run(t, clustertest.Suite{
		New: func(t *testing.T) clustertest.Cluster {
			t.Helper()
			return open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
		},
		Scope: scope, Image: kit.DebianImage, Timeout: 2 * time.Minute,
	})
}

// open returns a cluster that is closed at the end of the test.
func open(t *testing.T, s kube.Settings) *kube.Cluster {
	t.Helper()
	c, err := kube.New(s, zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
