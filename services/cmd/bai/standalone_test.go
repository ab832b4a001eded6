package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestAPlatformIsOneDirectoryAndOneAddressOfLoopback(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/share")
	flags := standaloneCommand(io.Discard, io.Discard).Flags()
	for name, want := range map[string]string{"data": "/share/bai", "listen": "127.0.0.1:7070"} {
		if got := flags.Lookup(name).DefValue; got != want {
			t.Errorf("--%s is %q by default, want %q", name, got, want)
		}
	}
}

func TestAnEmptyDataFolderIsRefusedWithTheRemedy(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, empty := range []string{"--data=", "--config="} {
		c := standaloneCommand(io.Discard, io.Discard)
		c.SetArgs([]string{empty, "--without=nothing"}) // also refused
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		err := c.Execute()
		if refused := err != nil && strings.Contains(err.Error(), "--data is empty") && strings.Contains(err.Error(), "leave --data out"); refused != (empty == "--data=") {
			t.Errorf("standalone %s: %v", empty, err)
		}
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestADataFolderThatIsNotUTF8IsRefusedWithItsNameAndTheRemedy(t *testing.T) {
	around := t.TempDir()
	_, err := datadir.Open(filepath.Join(around, "b\xff"))
	if err == nil || !strings.Contains(err.Error(), `b\xff": the path is not UTF-8; choose another with --data`) {
		t.Errorf("openDataDir: %v, want the name and the remedy", err)
	}
	if left, _ := os.ReadDir(around); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestReadinessDependsOnTheClusterWherePodsRunThere(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster *kube.Cluster
		want    []string
	}{
		"on this machine": {nil, []string{"disk", "kafka", "seals", "store"}},
		"in Kubernetes":   {&kube.Cluster{}, []string{"disk", "kafka", "kubernetes", "seals", "store"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &platform{store: storetest.Open(t), kube: tt.cluster}
			if d := cmp.Diff(tt.want, slices.Sorted(maps.Keys(p.checks()))); d != "" {
				t.Error(d)
			}
		})
	}
}
