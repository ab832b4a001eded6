package real_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestWhatTheClusterSaidIsToldAlsoWhenThePodsAreGone prints the histories of runs whose
// objects are deleted.
func TestWhatTheClusterSaidIsToldAlsoWhenThePodsAreGone(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"2s\"\n[executor.pods.allow.default]\nsecrets = [\"no-such-secret\"]\n", "--slots", "10")
	stories := map[string]struct {
		failureCase
		tells []string // patterns
	}{
		"no node has so many GPUs": {
			failureCase{hardware: "gpus = 99", pending: "1m"},
			[]string{`0/\d+ nodes are available: .*Insufficient nvidia\.com/gpu`, `timed out after 1m`},
		},
		"an image that is nowhere": {
			failureCase{image: "example.org/none:1", pending: "1m"},
			[]string{`preparing the pod on node\d`, `node\d: Pulling image "example\.org/none:1"|pull.*example\.org/none:1`, `ImagePullBackOff|ErrImagePull`},
		},
		"a secret that is not there": {
			failureCase{env: `secrets = { TOKEN = "no-such-secret/token" }`, pending: "1m"},
			[]string{`preparing the pod on node\d`, `secret "no-such-secret" not found`},
		},
	}
	runs := map[string]string{}
	var (
		all sync.WaitGroup
		mu  sync.Mutex
	)
	dir := t.TempDir()
	for name, s := range stories {
		all.Go(func() {
			end, _, err := w.provoke(t.Context(), filepath.Join(dir, name+".toml"), s.failureCase)
			mu.Lock()
			defer mu.Unlock()
			if runs[name] = end.ID; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	awaitCleared(t, w.cluster, w.scope)
	for name, s := range stories {
		out, code := w.baictl(t, "why", runs[name])
		t.Logf("%s:\n%s", name, out)
		if code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		printed := strings.Join(strings.Fields(out), " ") // lines are broken to fit 80 columns
		for _, pattern := range s.tells {
			if !regexp.MustCompile(pattern).MatchString(printed) {
				t.Errorf("%s: it does not tell %s", name, pattern)
			}
		}
	}
}
