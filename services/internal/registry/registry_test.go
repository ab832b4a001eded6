package registry_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	server "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// secrets are pull secrets, by name.
type secrets map[string]map[string][]byte

func (s secrets) PullSecret(_ context.Context, scope, name string) (map[string][]byte, error) {
	if s[name] == nil || scope != "benchmarks" {
		return nil, fmt.Errorf("get secret %s: forbidden", name)
	}
	return s[name], nil
}

// dockerConfig is a pull secret as kubectl makes it.
func dockerConfig(host, password string) map[string][]byte {
	login := base64.StdEncoding.EncodeToString([]byte("ann:" + password))
	return map[string][]byte{".dockerconfigjson": fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, login)}
}

// serve serves a registry, behind the handler before if that is not nil, and returns its
// host.
func serve(t *testing.T, before func(next http.Handler) http.Handler) string {
	t.Helper()
	h := server.New(server.Logger(zap.NewStdLog(zap.NewNop())))
	if before != nil {
		h = before(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// image is one that runs words on an architecture.
func image(t *testing.T, arch string, entrypoint ...string) v1.Image {
	t.Helper()
	i, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint, config.Config.Cmd, config.Config.Env = entrypoint, []string{"--n", "$HOME"}, []string{"SECRET=geheim"}
	if i, err = mutate.ConfigFile(i, config); err != nil {
		t.Fatal(err)
	}
	return i
}

// push puts an image into a registry, and returns its digest.
func push(t *testing.T, ref string, i v1.Image, with ...remote.Option) string {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, i, with...); err != nil {
		t.Fatal(err)
	}
	digest, err := i.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// reader asks registries on this machine.
func reader(t *testing.T, s registry.Settings, of registry.Secrets) *registry.Reader {
	t.Helper()
	s.Networks = append(s.Networks, "loopback")
	r, err := registry.New(s, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func readImage(t *testing.T, r *registry.Reader, q cluster.ImageQuery) cluster.Image {
	t.Helper()
	q.Scope = "benchmarks"
	got, err := r.Image(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != q.Name || (got.UnreadReason == "") == (got.Digest == "") && got.UnreadReason != "" {
		t.Errorf("%+v", got)
	}
	return got
}

// wantUnknown checks that there is no answer, for a reason.
func wantUnknown(t *testing.T, got cluster.Image, why ...string) {
	t.Helper()
	for _, w := range why {
		if !strings.Contains(got.UnreadReason, w) {
			t.Errorf("%+v, want %q", got, w)
		}
	}
	if len(got.Entrypoint) > 0 || got.Digest != "" {
		t.Errorf("there is an answer: %+v", got)
	}
}

func TestTheEntrypointOfAnImageIsThatOfItsRegistry(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	ref := host + "/team/bench:1"
	digest := push(t, ref, image(t, "amd64", "/bin/bench", "--fast"))
	want := cluster.Image{Name: ref, Digest: digest, Platform: "linux/amd64", Entrypoint: []string{"/bin/bench", "--fast"}, Cmd: []string{"--n", "$HOME"}}
	r := reader(t, registry.Settings{}, nil)
	if diff := cmp.Diff(want, readImage(t, r, cluster.ImageQuery{Name: ref})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Name = host + "/team/bench@" + digest
	if diff := cmp.Diff(want, readImage(t, r, cluster.ImageQuery{Name: want.Name})); diff != "" {
		t.Errorf("by its digest (-want +got):\n%s", diff)
	}
}

func TestAnImageForSeveralArchitecturesIsThatOfTheNode(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: image(t, "amd64", "/amd64"), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: image(t, "arm64", "/arm64"), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	ref, err := name.ParseReference(host + "/bench:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		settings, arch, want string
	}{
		"the usual one":                     {"", "", "/amd64"},
		"the one of the settings":           {"linux/arm64", "", "/arm64"},
		"the one that the descriptor names": {"linux/amd64", "arm64", "/arm64"},
		"none where the image has no such":  {"linux/riscv64", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readImage(t, reader(t, registry.Settings{Platform: tt.settings}, nil), cluster.ImageQuery{Name: ref.Name(), Arch: tt.arch})
			if tt.want == "" {
				wantUnknown(t, got, "riscv64")
				return
			}
			if len(got.Entrypoint) != 1 || got.Entrypoint[0] != tt.want || got.Digest != digest.String() {
				t.Errorf("%+v, want %s of the index %s", got, tt.want, digest)
			}
		})
	}
}

// basic lets clients with a login in.
func basic(user, password string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				http.Error(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "no\u001b[31m entry"}]}`, http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestAnImageIsAskedForWithItsPullSecrets(t *testing.T) {
	t.Parallel()
	host := serve(t, basic("ann", "geheim"))
	ref := host + "/team/bench:1"
	push(t, ref, image(t, "amd64", "/bench"), withLogin("ann", "geheim"))
	all := secrets{
		"right": dockerConfig(host, "geheim"), "wrong": dockerConfig(host, "falsch"),
		"elsewhere": dockerConfig("example.org", "geheim"), "broken": {".dockerconfigjson": []byte("{")},
	}
	for name, tt := range map[string]struct {
		secrets []string
		unread  []string
	}{
		"the right one":                         {secrets: []string{"right"}},
		"the second, when the first is refused": {secrets: []string{"wrong", "right"}},
		"beside others that do not matter":      {secrets: []string{"elsewhere", "broken", "none", "right"}},
		"none":                                  {unread: []string{"answers 401 Unauthorized: no[31m entry"}},
		"one of another registry":               {secrets: []string{"elsewhere"}, unread: []string{"401"}},
		"one that cannot be read":               {secrets: []string{"none"}, unread: []string{"401", `the pull secret "none" cannot be read: get secret none: forbidden`}},
		"one that is no login":                  {secrets: []string{"broken"}, unread: []string{"401", `the pull secret "broken" cannot be read: it is not JSON`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readImage(t, reader(t, registry.Settings{}, all), cluster.ImageQuery{Name: ref, Secrets: tt.secrets})
			if len(tt.unread) > 0 {
				wantUnknown(t, got, tt.unread...)
				wantDiscreet(t, got)
				return
			}
			if got.UnreadReason != "" || got.Entrypoint[0] != "/bench" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// wantDiscreet checks that the reason for a missing answer has no secret, and that it
// reports an unreadable secret.
func wantDiscreet(t *testing.T, got cluster.Image) {
	t.Helper()
	if got.NoSecret != strings.Contains(got.UnreadReason, "pull secret") || strings.Contains(got.UnreadReason, "geheim") || strings.Contains(got.UnreadReason, "\x1b") {
		t.Errorf("%+v", got)
	}
}

// tokens redirects clients without a token to realm.
func tokens(realm func() string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer t0ken" {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="registry"`, realm()))
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestARegistryThatWantsATokenIsAskedWithOne(t *testing.T) {
	t.Parallel()
	var host string
	host = serve(t, func(next http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
			if u, p, _ := r.BasicAuth(); u != "ann" || p != "geheim" {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			_, _ = io.WriteString(w, `{"token": "t0ken"}`)
		})
		mux.Handle("/", tokens(func() string { return "http://" + host + "/token" })(next))
		return mux
	})
	ref := host + "/bench:1"
	push(t, ref, image(t, "amd64", "/bench"), withLogin("ann", "geheim"))
	all := secrets{"right": dockerConfig("http://"+host+"/v1/", "geheim")}
	if got := readImage(t, reader(t, registry.Settings{}, all), cluster.ImageQuery{Name: ref, Secrets: []string{"right"}}); got.UnreadReason != "" {
		t.Errorf("%+v", got)
	}
}

// forbidden is a server on an address that is not allowed; it counts requests.
func forbidden(t *testing.T) (u string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		tooltest.Missing(t, "this machine has one address of loopback only: %v", err)
	}
	requests = &atomic.Int64{}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) })}} //nolint:gosec // for a test
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, requests
}

func TestNoRegistryLeadsToAnAddressThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	target, requests := forbidden(t)
	allowed := registry.Settings{Networks: []string{"127.0.0.1/32"}}
	r, err := registry.New(allowed, secrets{})
	if err != nil {
		t.Fatal(err)
	}
	redirects := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target+r.URL.Path, http.StatusFound) })
	})
	blobs := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, target+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	push(t, blobs+"/bench:1", image(t, "amd64", "/bench"))
	byName := serve(t, tokens(func() string { return strings.Replace(target, "127.0.0.2", "localtest.invalid", 1) + "/token" }))
	direct := serve(t, tokens(func() string { return target + "/token" }))
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	for name, ref := range map[string]string{
		"the registry itself":     u.Host + "/bench:1",
		"a redirect":              redirects + "/bench:1",
		"a redirect of a blob":    blobs + "/bench:1",
		"an endpoint of tokens":   direct + "/bench:1",
		"one by a name":           byName + "/bench:1",
		"the machine's metadata":  "169.254.169.254/bench:1",
		"a host by its own names": "localhost:" + u.Port() + "/bench:1",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Image(t.Context(), cluster.ImageQuery{Name: ref})
			if err != nil {
				t.Fatal(err)
			}
			wantUnknown(t, got)
			if got.UnreadReason == "" {
				t.Error("there is an answer")
			}
			t.Log(got.UnreadReason)
		})
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("what is not allowed was asked %d times", n)
	}
}

func TestAnAddressThatIsNotPublicIsAskedOnlyWhereSettingsSaySo(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	push(t, host+"/bench:1", image(t, "amd64", "/bench"))
	for name, tt := range map[string]struct {
		settings registry.Settings
		want     string
	}{
		"not by itself":       {registry.Settings{}, "address 127.0.0.1 is not public, and the platform's settings do not allow it (registry.networks)"},
		"allowed":             {registry.Settings{Networks: []string{"loopback"}}, ""},
		"but not by its host": {registry.Settings{Networks: []string{"loopback"}, Hosts: []string{"*.example.org"}}, `host "127.0.0.1" is not one that the platform's settings allow (registry.hosts)`},
		"where none is asked": {registry.Settings{Networks: []string{"loopback"}, Off: true}, "registry.off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := registry.New(tt.settings, secrets{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Image(t.Context(), cluster.ImageQuery{Name: host + "/bench:1"})
			if err != nil || !strings.Contains(got.UnreadReason, tt.want) || (tt.want == "") != (got.UnreadReason == "") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// answerInstead has do answer GET requests whose path has match in it.
func answerInstead(match string, do http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path != "/v2/" && strings.Contains(r.URL.Path, match) {
				do(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// endless answers until the client closes.
func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	for block := []byte(strings.Repeat(" ", 1<<20)); r.Context().Err() == nil; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// anotherConfig answers with the configuration of another image, without its length.
func anotherConfig(w http.ResponseWriter, _ *http.Request) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	text := `{"config": {"Entrypoint": ["/evil"]}}`
	_, _ = io.WriteString(w, text+strings.Repeat(" ", len(text)*20))
}

func redirectForever(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestAnswersOfRegistriesAreBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(http.Handler) http.Handler
		want   string
	}{
		"a manifest without end":            {answerInstead("/manifests/", endless), ""},
		"a configuration without end":       {answerInstead("/blobs/", endless), ""},
		"redirects without end":             {answerInstead("/manifests/", redirectForever), "more than 32 requests"},
		"a configuration of another digest": {answerInstead("/blobs/", anotherConfig), "error verifying"},
		"no answer":                         {answerInstead("/manifests/", silent), "did not answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := serve(t, tt.before)
			if tt.want == "" || strings.HasPrefix(tt.want, "error ver") {
				push(t, host+"/bench:1", image(t, "amd64", "/bench"))
			}
			s := registry.Settings{}
			if strings.HasPrefix(tt.want, "did not") {
				s.Timeout = 300 * time.Millisecond
			}
			got := readImage(t, reader(t, s, secrets{}), cluster.ImageQuery{Name: host + "/bench:1"})
			t.Log(got.UnreadReason)
			if got.UnreadReason == "" || len(got.UnreadReason) > 400 {
				t.Errorf("%+v", got)
			}
			wantUnknown(t, got, tt.want)
		})
	}
}

func TestAManifestOfAnotherDigestIsNoAnswer(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	push(t, host+"/bench:1", image(t, "amd64", "/bench"))
	wrong := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			answer, err := http.Get("http://" + host + "/v2/bench/manifests/1")
			if err != nil {
				return
			}
			defer func() { _ = answer.Body.Close() }()
			w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
			_, _ = io.Copy(w, answer.Body)
		})
	})
	ref := wrong + "/bench@sha256:" + strings.Repeat("ab", 32)
	wantUnknown(t, readImage(t, reader(t, registry.Settings{}, secrets{}), cluster.ImageQuery{Name: ref}), "does not match requested digest")
}

func TestWhoStopsIsToldNoAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	host := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	})
	if got, err := reader(t, registry.Settings{}, secrets{}).Image(ctx, cluster.ImageQuery{Name: host + "/bench:1"}); err == nil {
		t.Errorf("%+v", got)
	}
}

func TestFaultsOfSettingsAreNamed(t *testing.T) {
	t.Parallel()
	err := registry.Settings{Platform: "amd64", Hosts: []string{"a*"}, Networks: []string{"x"}, Timeout: -1}.Validate()
	for _, want := range []string{"registry.platform", "registry.hosts", "registry.networks", "registry.timeout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

func withLogin(user, password string) remote.Option {
	return remote.WithAuth(&authn.Basic{Username: user, Password: password})
}
