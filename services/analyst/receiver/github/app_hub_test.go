package github_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

const (
	appID   = "Iv23liExample"
	appSlug = "bai-bot"
	appPath = "/app/installations/42/access_tokens"
)

// appKeys are two private keys of the App, with their texts in PEM as GitHub gives them.
var appKeys = sync.OnceValue(func() (all [2]appKey) {
	for i := range all {
		key, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			panic(err) //nolint:forbidigo // there is no test without it
		}
		block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
		all[i] = appKey{&key.PublicKey, string(pem.EncodeToMemory(block))}
	}
	return all
})

type appKey struct {
	public *rsa.PublicKey
	text   string
}

// issuer gives tokens to the App.
type issuer struct {
	mu     sync.Mutex
	key    *rsa.PublicKey
	now    func() time.Time
	tokens []string // those that are valid
	issued int
	refuse int // status of the next requests; 0 for none
}

// answer answers a request for a token, and reports whether it was one.
func (i *issuer) answer(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != appPath {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	signed := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(signed, &claims, func(*jwt.Token) (any, error) { return i.key, nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuedAt(), jwt.WithExpirationRequired(), jwt.WithIssuer(appID), jwt.WithTimeFunc(i.now))
	switch {
	case r.Method != http.MethodPost || !documented(r):
		w.WriteHeader(http.StatusBadRequest)
	case err != nil || claims.ExpiresAt.Sub(i.now()) > 10*time.Minute:
		http.Error(w, `{"message":"A JSON web token could not be decoded"}`, http.StatusUnauthorized)
	case i.refuse != 0:
		w.Header().Set("Retry-After", "7")
		http.Error(w, `{"message":"no"}`, i.refuse)
	default:
		i.issued++
		token := fmt.Sprintf("ghs_%d", i.issued)
		i.tokens = append(i.tokens, token)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_at": i.now().Add(time.Hour).UTC().Format(time.RFC3339)})
	}
	return true
}

// accepts reports whether a request has a token that is valid.
func (i *issuer) accepts(r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Contains(i.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
}

// revoke makes all tokens invalid, and the App have another key.
func (i *issuer) revoke(key *rsa.PublicKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tokens, i.key = nil, key
}

// count returns how many tokens were issued.
func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.issued
}

// documented reports whether a request has the headers that GitHub documents.
func documented(r *http.Request) bool {
	return r.Header.Get("User-Agent") != "" && r.Header.Get("Accept") == "application/vnd.github+json" &&
		r.Header.Get("X-Github-Api-Version") == "2022-11-28"
}

// checkPaths are those of the API of check runs, as GitHub documents them.
var checkPaths = map[string]*regexp.Regexp{
	"list":   regexp.MustCompile(`^GET /repos/acme/app/commits/([0-9a-f]{40})/check-runs$`),
	"create": regexp.MustCompile(`^POST /repos/acme/app/check-runs$`),
	"update": regexp.MustCompile(`^PATCH /repos/acme/app/check-runs/(\d+)$`),
}

// checkRoute returns the name of a request that is about check runs, and the part of its path; "" for another one.
func checkRoute(r *http.Request) (name, part string) {
	for name, path := range checkPaths {
		if parts := path.FindStringSubmatch(r.Method + " " + r.URL.Path); parts != nil {
			return name, strings.Join(parts[1:], "")
		}
	}
	return "", ""
}

// checkRun is a check run, as GitHub documents it.
type checkRun struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha"`
	ExternalID string `json:"external_id"`
	DetailsURL string `json:"details_url"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	Output     struct {
		Title   string `json:"title"`
		Summary string `json:"summary"`
	} `json:"output"`
	App struct {
		Slug string `json:"slug"`
	} `json:"app"`
}

// readCheck returns the check run in the body of a request, and the status with which GitHub refuses it, 0 for none.
func readCheck(name string, body []byte) (c checkRun, status int) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(&c) != nil {
		return c, http.StatusBadRequest
	}
	conclusions := []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
	switch {
	case c.ID != 0 || c.App.Slug != "", c.Status != "completed", !slices.Contains(conclusions, c.Conclusion),
		c.Name == "", c.Output.Title == "", c.Output.Summary == "", utf8.RuneCountInString(c.Output.Summary) > 65535,
		(name == "create") != (len(c.HeadSHA) == 40):
		return c, http.StatusUnprocessableEntity
	}
	return c, 0
}

// appHub is GitHub with an App that is installed at the owner of the repository.
type appHub struct {
	*hub
	*issuer

	server *httptest.Server
	checks []checkRun
	cutOff string // name of the requests whose answer is cut off
}

func newAppHub(t *testing.T) *appHub {
	t.Helper()
	h := &appHub{hub: newHub(t), issuer: &issuer{key: appKeys()[0].public, now: time.Now}}
	h.server = httptest.NewServer(h)
	t.Cleanup(h.server.Close)
	return h
}

// ServeHTTP implements http.Handler.
func (h *appHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.answer(w, r) {
		return
	}
	name, part := checkRoute(r)
	if !h.accepts(r) || !documented(r) {
		http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
		return
	}
	if name == "" {
		r.Header.Set("Authorization", "Bearer one")
		h.hub.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	answer, status := h.handleCheck(name, part, r, body)
	if h.cutOff == name {
		panic(http.ErrAbortHandler) //nolint:forbidigo // how net/http ends a connection without an answer
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// handleCheck does what a request about check runs asks for.
func (h *appHub) handleCheck(name, part string, r *http.Request, body []byte) (answer any, status int) {
	if name == "list" {
		return h.list(part, r), http.StatusOK
	}
	in, status := readCheck(name, body)
	if status != 0 {
		return nil, status
	}
	in.App.Slug = appSlug
	if name == "create" {
		in.ID = int64(len(h.checks) + 1)
		h.checks = append(h.checks, in)
		h.writes = append(h.writes, fmt.Sprintf("check %d: %s %s", in.ID, in.Conclusion, in.Name))
		return in, http.StatusCreated
	}
	id, _ := strconv.Atoi(part)
	if id < 1 || id > len(h.checks) || h.checks[id-1].App.Slug != appSlug {
		return nil, http.StatusForbidden
	}
	in.ID, in.HeadSHA = int64(id), h.checks[id-1].HeadSHA
	h.checks[id-1] = in
	h.writes = append(h.writes, fmt.Sprintf("edit check %d: %s %s", id, in.Conclusion, in.Name))
	return in, http.StatusOK
}

// list returns a page of the check runs of a commit with a name.
func (h *appHub) list(commit string, r *http.Request) any {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("per_page"))
	page, _ := strconv.Atoi(q.Get("page"))
	var all []checkRun
	for _, c := range h.checks {
		if c.HeadSHA == commit && c.Name == q.Get("check_name") && q.Get("filter") == "all" {
			all = append(all, c)
		}
	}
	begin := min(max(page-1, 0)*size, len(all))
	return map[string]any{"total_count": len(all), "check_runs": all[begin:min(begin+size, len(all))]}
}
