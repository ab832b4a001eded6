package rest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestAPodReadsTheObjectsOfItsRunWithTheRunsToken(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	run := w.submit()
	w.putObject("abc", "cats and dogs")
	w.putObject("other", "a team's secret")
	mine := "Bearer " + token(run)
	w.recordFetched(run, "objects/abc", "objects/abc.tmp", "objects/none")
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
		"what another run was told":   {"objects/other", mine, "", http.StatusForbidden, `object \"objects/other\" is not one that run ` + run + " needs", ""},
		"called by any name, as pods": {"objects/abc", mine, "", http.StatusOK, "cats and dogs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"Range", tt.part, "Host", "gateway.benchmark-ai:7070"}
			if tt.authorization != "" {
				headers = append(headers, "Authorization", tt.authorization)
			}
			code, header, text := w.request(http.MethodGet, "/v1/runs/"+run+"/"+tt.object, nil, headers...)
			if code != tt.code || !strings.Contains(text, tt.want) || header.Get("Content-Range") != tt.partial {
				t.Errorf("answers %d %q with %q, want %d %q with %q", code, text, header.Get("Content-Range"), tt.code, tt.want, tt.partial)
			}
		})
	}
	for _, other := range []string{"objects/../store", "artifacts/abc"} {
		if code, _, text := w.request(http.MethodGet, "/v1/runs/"+run+"/"+other, nil, "Authorization", mine); code == http.StatusOK {
			t.Errorf("%s is to be had: %s", other, text)
		}
	}
	if code, _, _ := w.request(http.MethodPut, "/v1/runs/"+run+"/objects/abc", io.NopCloser(strings.NewReader("x")), "Authorization", mine); code < 400 {
		t.Errorf("an object can be changed: %d", code)
	}
}

func TestATokenOpensNothingAfterTheEndOfItsRun(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	run := w.submit()
	w.putObject("abc", "cats and dogs")
	w.recordFetched(run, "objects/abc")
	get := func() (int, http.Header, string) {
		return w.request(http.MethodGet, "/v1/runs/"+run+"/objects/abc", nil, "Authorization", "Bearer "+token(run))
	}
	put := func(name string) (int, http.Header, string) {
		return w.request(http.MethodPut, "/v1/runs/"+run+"/artifacts/1/benchmark-0/"+name, strings.NewReader("late"), "Authorization", "Bearer "+token(run))
	}
	if code, _, text := get(); code != http.StatusOK {
		t.Fatalf("before the end: %d %s", code, text)
	}
	if code, _, text := put("before"); code != http.StatusCreated {
		t.Fatalf("before the end: %d %s", code, text)
	}
	w.finishRun(run)
	w.waitForPhase(run, "PHASE_FINISHED")
	for range 2 { // a repetition gets the same answer
		if code, _, text := get(); code != http.StatusForbidden || !strings.Contains(text, "its token opens no objects any more") {
			t.Errorf("read after the end: %d %s", code, text)
		}
		if code, _, text := put("after"); code != http.StatusForbidden || !strings.Contains(text, "it takes no more files") {
			t.Errorf("write after the end: %d %s", code, text)
		}
	}
	if code, _, text := w.request(http.MethodGet, "/v1/runs/"+run+"/artifacts/1/benchmark-0/before", nil); code != http.StatusOK || text != "late" {
		t.Errorf("the file that was kept: %d %s", code, text)
	}
}

func TestAPodThatIsAheadOfTheRecordOfItsRunIsWaitedFor(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	run := w.submit()
	w.putObject("abc", "cats and dogs")
	answer := make(chan string, 1)
	go func() {
		code, _, text := w.request(http.MethodGet, "/v1/runs/"+run+"/objects/abc", nil, "Authorization", "Bearer "+token(run))
		answer <- fmt.Sprint(code, " ", text)
	}()
	w.recordFetched(run, "objects/abc")
	if got := <-answer; got != "200 cats and dogs" {
		t.Errorf("answers %s", got)
	}
}

// recordFetched publishes that the data of a run are in objects, and returns when the
// event is projected.
func (w *fixture) recordFetched(run string, objects ...string) {
	w.t.Helper()
	ev := event.Fetched{Header: event.NewHeader(event.Derive(run, "fetched"), run, "default", "ann", time.Now()), Descriptor: valid}
	for _, o := range objects {
		ev.Data = append(ev.Data, event.Data{Source: "s3://b/" + o, Path: "/data", Object: o, SHA256: "x"})
	}
	if err := w.bus.Publish(w.t.Context(), ev); err != nil {
		w.t.Fatal(err)
	}
	w.waitForPhase(run, "PHASE_QUEUED")
}

// waitForPhase returns when the projection of a run has reached a phase.
func (w *fixture) waitForPhase(run, phase string) {
	w.t.Helper()
	for {
		code, _, text := w.request(http.MethodGet, "/v1/runs/"+run, nil)
		if code == http.StatusOK && strings.Contains(text, `"`+phase+`"`) {
			return
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatalf("run %s is not in %s: %d %s", run, phase, code, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// putObject stores an object.
func (w *fixture) putObject(name, content string) {
	w.t.Helper()
	dir := filepath.Join(w.objects, "objects")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}
