package puller_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pairtest"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

// maxMemory is how much memory a pull may take, in a process of its own, in MiB.
const maxMemory = 64

// TestProgram is not a test: it is the programs that the next test compares.
func TestProgram(t *testing.T) {
	part, dir := os.Getenv(pairtest.Env), os.Getenv("PAIR_DIR")
	if part == "" {
		t.Skip("for TestAPullKeepsItsBars")
	}
	var cfg pod.Pull
	if err := json.Unmarshal([]byte(os.Getenv("PAIR_PULL")), &cfg); err != nil {
		t.Fatal(err)
	}
	work := func() error { return puller.Run(t.Context(), dir, cfg, nil) }
	if part == "bare" {
		work = func() error { return baselinePull(cfg.Store+"/"+cfg.Data[0].Object, dir, cfg.Data[0].SHA256) }
	}
	if err := pairtest.ServeTurns(os.Stdin, os.Stdout, func() error {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		return work()
	}); err != nil {
		t.Error(err)
	}
}

// TestAPullKeepsItsBars measures as the fetcher's test of that name does: with BAI_BARS set, 1 GiB or the given number of MiB.
func TestAPullKeepsItsBars(t *testing.T) {
	mib, err := strconv.Atoi(cmp.Or(os.Getenv("BAI_BARS"), "0"))
	if err != nil {
		t.Fatal(err)
	}
	if mib == 0 {
		t.Skip("measures: set BAI_BARS=1 on a machine that does nothing else")
	}
	if mib == 1 {
		mib = 1024
	}
	depot, d := filledStore(t, mib)
	server := httptest.NewServer(http.FileServer(http.Dir(depot)))
	defer server.Close()
	start := func(part, store string) *pairtest.Program {
		text, err := json.Marshal(pod.Pull{Store: store, Data: []event.Data{d}})
		if err != nil {
			t.Fatal(err)
		}
		return pairtest.Start(t, "TestProgram", part, "PAIR_PULL="+string(text), "PAIR_DIR="+filepath.Join(t.TempDir(), "pulled"))
	}
	plain := start("bare", server.URL)
	for name, store := range map[string]string{"over HTTP": server.URL, "from a folder": "file://" + depot} {
		p := start("puller", store)
		r := pairtest.Compare(t, 3, p, plain, nil)
		peak := p.PeakMemory(t)
		t.Logf("%d MiB %s: %s; %.1f MiB of memory", mib, name, r, peak)
		if peak > maxMemory {
			t.Errorf("%s: %.1f MiB of memory, want %d at most", name, peak, maxMemory)
		}
	}
}
