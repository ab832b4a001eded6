package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// mutableSource serves its current content, and answers whether that is the client's
// version.
type mutableSource struct {
	*httptest.Server

	mu              sync.Mutex
	content         string
	sent, unchanged int
}

func newMutableSource(t *testing.T, content string) *mutableSource {
	t.Helper()
	c := &mutableSource{content: content}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(c.content)))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			c.unchanged++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		c.sent++
		_, _ = fmt.Fprint(w, c.content) // or the client is gone
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *mutableSource) change(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.content = to
}

func (c *mutableSource) counts() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d sent, %d unchanged", c.sent, c.unchanged)
}

// The data of a schedule are those of each firing's time, though its descriptor is
// pinned: unchanged data are revalidated and not sent again.
func TestTheDataOfAScheduleAreRevalidatedAtEachFiring(t *testing.T) {
	t.Parallel()
	p, site := start(t), newMutableSource(t, "cats")
	file := filepath.Join(t.TempDir(), "descriptor.toml")
	text := script("cat /data/x; echo", fmt.Sprintf("[[data.sources]]\nsrc = \"%s/x\"\npath = \"/data/x\"", site.URL))
	text = strings.Replace(text, "[info]", "[info]\nscheduling = \"0 0 1 1 *\"", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.baictl("submit", file, "--name", "yearly"); code != 0 {
		t.Fatalf("exits with %d: %s%s", code, out, errs)
	}
	for i, tt := range []struct{ content, want string }{
		{"cats", "1 sent, 0 unchanged"},
		{"cats", "1 sent, 1 unchanged"},
		{"dogs", "2 sent, 1 unchanged"},
		{"dogs", "2 sent, 2 unchanged"},
	} {
		site.change(tt.content)
		run, errs, code := p.baictl("schedule", "trigger", "yearly")
		if code != 0 {
			t.Fatalf("trigger exits with %d: %s", code, errs)
		}
		r := p.awaitComplete(strings.TrimSpace(run))
		if r.GetOutcome().String() != "OUTCOME_SUCCEEDED" {
			t.Fatalf("firing %d: %v", i, r)
		}
		if got := strings.Join(p.lines(r.GetId()), "\n"); !strings.Contains(got, tt.content) {
			t.Errorf("firing %d had %q, want %s", i, got, tt.content)
		}
		if got := site.counts(); got != tt.want {
			t.Errorf("firing %d: %s, want %s", i, got, tt.want)
		}
	}
}
