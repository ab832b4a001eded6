package rest_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/rest"
)

// tarArchive returns a tar archive with one file, and its digest.
func tarArchive(t *testing.T) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "run.sh", Size: 5, Mode: 0o755}), write(w, "hello"), w.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	return b.Bytes(), hex.EncodeToString(sum[:])
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func TestCodeIsSentAndARunSubmittedWithItOverHTTP(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	code, digest := tarArchive(t)
	for i, want := range []int{http.StatusCreated, http.StatusOK} {
		status, _, text := w.request(http.MethodPut, "/v1/scripts/"+strings.ToUpper(digest), bytes.NewReader(code), "Bai-User", "ann")
		if status != want || !strings.Contains(text, digest) {
			t.Errorf("sent the %d. time: %d %s", i+1, status, text)
		}
	}
	if status, _, text := w.request(http.MethodGet, "/v1/scripts/"+digest, nil); status != http.StatusOK || !strings.Contains(text, digest) {
		t.Errorf("looked for: %d %s", status, text)
	}
	body, err := json.Marshal(map[string]any{"descriptorToml": base64.StdEncoding.EncodeToString([]byte(valid)), "scriptSha256": digest, "name": "n"})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, text := w.request(http.MethodPost, "/v1/runs", bytes.NewReader(body), "Content-Type", "application/json"); status != http.StatusOK {
		t.Fatalf("submit: %d %s", status, text)
	}
	if status, _, text := w.request(http.MethodGet, "/v1/runs/n", nil); status != http.StatusOK || !strings.Contains(strings.ReplaceAll(text, " ", ""), `"script":{"sha256":"`+digest+`"`) {
		t.Errorf("get: %d %s", status, text)
	}
}

func TestCodeThatIsNotTakenIsToldWhy(t *testing.T) {
	w := newFixture(t, gateway.Settings{Scripts: bundle.Settings{MaxSize: 4096}})
	code, digest := tarArchive(t)
	for name, tt := range map[string]struct {
		path string
		body io.Reader
		want int
		text string
	}{
		"other bytes":               {"/v1/scripts/" + digest, bytes.NewReader(code[1:]), http.StatusBadRequest, "what came has sha256"},
		"what is no digest":         {"/v1/scripts/latest", bytes.NewReader(code), http.StatusBadRequest, "is not the SHA-256 of anything"},
		"too much":                  {"/v1/scripts/" + digest, bytes.NewReader(make([]byte, 5000)), http.StatusRequestEntityTooLarge, "gateway.scripts.max_size"},
		"no length":                 {"/v1/scripts/" + digest, io.MultiReader(bytes.NewReader(code)), http.StatusLengthRequired, "Content-Length"},
		"an owner that is nobody's": {"/v1/scripts/" + digest + "?owner=a!b", bytes.NewReader(code), http.StatusBadRequest, "is not the name of an owner"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, text := w.request(http.MethodPut, tt.path, tt.body); status != tt.want || !strings.Contains(text, tt.text) {
				t.Errorf("%d %s, want %d with %s", status, text, tt.want, tt.text)
			}
		})
	}
	if status, _, text := w.request(http.MethodGet, "/v1/scripts/"+digest, nil); status != http.StatusNotFound {
		t.Errorf("looked for what is not kept: %d %s", status, text)
	}
	if left := storedObjects(t, w.objects); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if status, _, text := w.request(http.MethodPut, "/v1/scripts/"+digest, bytes.NewReader(code), "Origin", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a page of another origin: %d %s", status, text)
	}
}

func TestOfCodeThatIsCutNothingIsLeft(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{Stall: 200 * time.Millisecond}})
	code, digest := tarArchive(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+w.addr+"/v1/scripts/"+digest, io.MultiReader(bytes.NewReader(code[:700]), iotest.ErrReader(errors.New("cut"))))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(code))
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Errorf("answered %s", resp.Status)
	}
	eventually(t, "something is left", func() bool { return len(storedObjects(t, w.objects)) == 0 })
	if status, _, text := w.request(http.MethodPut, "/v1/scripts/"+digest, bytes.NewReader(code)); status != http.StatusCreated {
		t.Errorf("sent again: %d %s", status, text)
	}
}

// storedObjects returns the stored objects of runs.
func storedObjects(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "objects", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
