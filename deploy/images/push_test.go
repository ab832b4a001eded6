package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// fakeRegistry starts a registry on loopback, and returns its address and how many requests
// have changed it.
func fakeRegistry(t *testing.T, options ...registry.Option) (string, *atomic.Int64) {
	t.Helper()
	changes, next := new(atomic.Int64), registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			changes.Add(1)
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), changes
}

// layoutOfOurs writes the layout of our images.
func layoutOfOurs(t *testing.T, prefix string) string {
	t.Helper()
	bin, out := programs(t), filepath.Join(t.TempDir(), "out")
	if err := dispatch([]string{"all", "-bin", bin, "-out", out, "-version", "v1", "-prefix", prefix}); err != nil {
		t.Fatal(err)
	}
	return out
}

// wantPushed compares the images at a registry and path with those of a layout.
func wantPushed(t *testing.T, out, at string) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(out)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Manifests {
		parts := strings.Split(d.Annotations[imageName], "/")
		ref, err := name.ParseReference(at + "/" + parts[len(parts)-1])
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Get(ref)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != d.Digest {
			t.Errorf("%s is %s, want %s", ref, got.Digest, d.Digest)
		}
		referrers, err := remote.Referrers(ref.Context().Digest(d.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		list, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Manifests) != 1 || list.Manifests[0].ArtifactType != sbomType {
			t.Errorf("%s has the referrers %+v, want the list of its parts", ref, list.Manifests)
		}
	}
}

func TestImagesArePushedWithTheListsOfTheirParts(t *testing.T) {
	for name, referrers := range map[string]bool{"to a registry that knows referrers": true, "to one that does not": false} {
		t.Run(name, func(t *testing.T) {
			address, changes := fakeRegistry(t, registry.WithReferrersSupport(referrers))
			out, at := layoutOfOurs(t, "docker.io/benchmark-ai"), address+"/team/bai"
			if err := dispatch([]string{"push", "-from", out, "-to", at}); err != nil {
				t.Fatal(err)
			}
			wantPushed(t, out, at)
			before := changes.Load()
			if err := dispatch([]string{"push", "-from", out, "-to", at}); err != nil {
				t.Fatal(err)
			}
			wantPushed(t, out, at)
			if n := changes.Load() - before; n > 0 && referrers {
				t.Errorf("%d requests change what is there already", n)
			}
		})
	}
}

func TestImagesArePushedWhereTheirNamesSayUnlessToldOtherwise(t *testing.T) {
	address, _ := fakeRegistry(t, registry.WithReferrersSupport(true))
	out := layoutOfOurs(t, address+"/own")
	if err := dispatch([]string{"push", "-from", out}); err != nil {
		t.Fatal(err)
	}
	wantPushed(t, out, address+"/own")
}

func TestAPushHasTheCredentialsOfALogin(t *testing.T) {
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			w.Header().Set("WWW-Authenticate", "Basic realm=registry")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	defer s.Close()
	out, address := layoutOfOurs(t, "docker.io/benchmark-ai"), strings.TrimPrefix(s.URL, "http://")
	login := t.TempDir()
	t.Setenv("DOCKER_CONFIG", login)
	if err := dispatch([]string{"push", "-from", out, "-to", address}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without a login: %v", err)
	}
	text := fmt.Sprintf(`{"auths": {%q: {"auth": "YW5uOnNlY3JldA=="}}}`, address) // ann:secret
	if err := os.WriteFile(filepath.Join(login, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dispatch([]string{"push", "-from", out, "-to", address}); err != nil {
		t.Error(err)
	}
}

func TestAPushThatCannotBeSaysWhy(t *testing.T) {
	address, _ := fakeRegistry(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	out := layoutOfOurs(t, "docker.io/benchmark-ai")
	changed := layoutOfOurs(t, "docker.io/benchmark-ai")
	if err := os.WriteFile(filepath.Join(changed, "analyst.cdx.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no layout":           {[]string{"-from", t.TempDir(), "-to", address}, "is not a layout that 'images all' or 'images suite' wrote"},
		"no name":             {[]string{"-from", out, "-to", address + "/BAD NAME"}, `an image cannot be called "` + address + `/BAD NAME/analyst:v1"`},
		"another list":        {[]string{"-from", changed, "-to", address}, "analyst.cdx.json is not the list that the layout has of the image"},
		"no right to push it": {[]string{"-from", out, "-to", strings.TrimPrefix(refusing.URL, "http://")}, "push " + strings.TrimPrefix(refusing.URL, "http://") + "/analyst:v1: "},
	} {
		if err := dispatch(append([]string{"push"}, tt.args...)); err == nil || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
