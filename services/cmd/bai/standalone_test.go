package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestReadinessDependsOnTheClusterWherePodsRunThere(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster *kube.Cluster
		want    []string
	}{
		"on this machine": {nil, []string{"kafka", "store"}},
		"in Kubernetes":   {&kube.Cluster{}, []string{"kafka", "kubernetes", "store"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &platform{store: storetest.Open(t), kube: tt.cluster}
			if d := cmp.Diff(tt.want, slices.Sorted(maps.Keys(p.checks()))); d != "" {
				t.Error(d)
			}
		})
	}
}
