package rest_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/gateway"
)

func TestAPodReadsTheObjectsOfItsRunWithTheRunsToken(t *testing.T) {
	w := newWorld(t, gateway.Settings{})
	run := w.submit()
	w.lay("abc", "cats and dogs")
	mine := "Bearer " + token(run)
	for name, tt := range map[string]struct {
		object, authorization, part string
		code                        int
		want, partial               string
	}{
		"all of it":                   {"objects/abc", mine, "", http.StatusOK, "cats and dogs", ""},
		"the rest of it":              {"objects/abc", mine, "bytes=5-", http.StatusPartialContent, "and dogs", "bytes 5-12/13"},
		"more than there is":          {"objects/abc", mine, "bytes=13-", http.StatusRequestedRangeNotSatisfiable, "13 bytes", "bytes */13"},
		"nobody's token":              {"objects/abc", "", "", http.StatusUnauthorized, "the token of the run is needed", ""},
		"another run's token":         {"objects/abc", "Bearer " + token("other"), "", http.StatusForbidden, "not the token of run", ""},
		"what is not there":           {"objects/none", mine, "", http.StatusNotFound, `object \"objects/none\" does not exist`, ""},
		"what is being written":       {"objects/abc.tmp", mine, "", http.StatusNotFound, "", ""},
		"called by any name, as pods": {"objects/abc", mine, "", http.StatusOK, "cats and dogs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"Range", tt.part, "Host", "gateway.benchmark-ai:7070"}
			if tt.authorization != "" {
				headers = append(headers, "Authorization", tt.authorization)
			}
			code, header, text := w.ask(http.MethodGet, "/v1/runs/"+run+"/"+tt.object, nil, headers...)
			if code != tt.code || !strings.Contains(text, tt.want) || header.Get("Content-Range") != tt.partial {
				t.Errorf("answers %d %q with %q, want %d %q with %q", code, text, header.Get("Content-Range"), tt.code, tt.want, tt.partial)
			}
		})
	}
	for _, other := range []string{"objects/../store", "artifacts/abc"} {
		if code, _, text := w.ask(http.MethodGet, "/v1/runs/"+run+"/"+other, nil, "Authorization", mine); code == http.StatusOK {
			t.Errorf("%s is to be had: %s", other, text)
		}
	}
	if code, _, _ := w.ask(http.MethodPut, "/v1/runs/"+run+"/objects/abc", io.NopCloser(strings.NewReader("x")), "Authorization", mine); code < 400 {
		t.Errorf("an object can be changed: %d", code)
	}
}

// lay puts an object into the object store.
func (w *world) lay(name, content string) {
	w.t.Helper()
	dir := filepath.Join(w.objects, "objects")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}
