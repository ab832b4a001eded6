package receivers

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	hubToken   = "a token of GitHub"
	hubAccount = "bai-bot"
	hubName    = "acme/app"
)

// GitHub has one repository, acme/app, in which there is every commit and every pull request. It is strict about what GitHub documents.
type GitHub struct {
	log

	server   *httptest.Server
	statuses map[string]map[string]string // by commit and context, the newest state
	comments map[string][]*remark         // by number of the pull request
	ids      int64
}

// remark is a comment.
type remark struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

func startGitHub(t *testing.T) *GitHub {
	t.Helper()
	g := &GitHub{statuses: map[string]map[string]string{}, comments: map[string][]*remark{}}
	g.server = g.serve(t, g.take)
	return g
}

func (g *GitHub) settings(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{
		"kind": "github", "url": g.server.URL, "username": hubAccount, "token_file": secret(t, hubToken),
		"repositories": []string{hubName},
	}
}

// Statuses returns the newest state of each context of a commit.
func (g *GitHub) Statuses(commit string) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.statuses[commit])
}

// Comments returns the texts of the comments of a pull request.
func (g *GitHub) Comments(pull string) (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.comments[pull] {
		all = append(all, c.Body)
	}
	return all
}

// hubPaths are those of the API that are used, as GitHub documents them.
func hubPaths() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"repository": regexp.MustCompile(`^GET /repos/acme/app$`),
		"status":     regexp.MustCompile(`^POST /repos/acme/app/statuses/([0-9a-f]{40})$`),
		"comments":   regexp.MustCompile(`^GET /repos/acme/app/issues/(\d+)/comments$`),
		"comment":    regexp.MustCompile(`^POST /repos/acme/app/issues/(\d+)/comments$`),
		"edit":       regexp.MustCompile(`^PATCH /repos/acme/app/issues/comments/(\d+)$`),
	}
}

func (g *GitHub) take(w http.ResponseWriter, r *http.Request, body []byte) {
	name, part := "", ""
	for n, path := range hubPaths() {
		if found := path.FindStringSubmatch(r.Method + " " + r.URL.Path); found != nil {
			name, part = n, strings.Join(found[1:], "")
		}
	}
	code := http.StatusNotFound
	switch {
	case name == "":
	case !bearer(r, hubToken):
		code = http.StatusUnauthorized
	case r.Header.Get("User-Agent") == "" || r.Header.Get("Accept") != "application/vnd.github+json" ||
		r.Header.Get("X-Github-Api-Version") != "2022-11-28":
		code = http.StatusForbidden
	default:
		var answer any
		if answer, code = g.handle(name, part, r, body); code < http.StatusBadRequest {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
	}
	g.refuse("%s %s: %d: %s", r.Method, r.URL, code, body)
	http.Error(w, `{"message":"no"}`, code)
}

// handle does what a request asks for.
func (g *GitHub) handle(name, part string, r *http.Request, body []byte) (answer any, code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch name {
	case "status":
		return g.setStatus(part, body)
	case "comments":
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if size < 1 || size > 100 || page < 1 {
			return nil, http.StatusUnprocessableEntity
		}
		all := g.comments[part]
		begin := min((page-1)*size, len(all))
		return slices.Concat([]*remark{}, all[begin:min(begin+size, len(all))]), http.StatusOK
	case "comment", "edit":
		return g.write(name, part, body)
	}
	return map[string]string{"full_name": hubName}, http.StatusOK
}

func (g *GitHub) setStatus(commit string, body []byte) (answer any, code int) {
	var s struct {
		State       string `json:"state"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	states := []string{"error", "failure", "pending", "success"}
	if strictly(body, &s) != nil || !slices.Contains(states, s.State) || utf8.RuneCountInString(s.Description) > 140 ||
		utf8.RuneCountInString(s.Context) > 255 {
		return nil, http.StatusUnprocessableEntity
	}
	if g.statuses[commit] == nil {
		g.statuses[commit] = map[string]string{}
	}
	g.statuses[commit][s.Context] = s.State
	return map[string]int{"id": 1}, http.StatusCreated
}

// write makes or edits a comment.
func (g *GitHub) write(name, part string, body []byte) (answer any, code int) {
	var c struct {
		Body string `json:"body"`
	}
	if strictly(body, &c) != nil || c.Body == "" || utf8.RuneCountInString(c.Body) > 65536 {
		return nil, http.StatusUnprocessableEntity
	}
	if name == "comment" {
		g.ids++
		is := &remark{ID: g.ids, Body: c.Body}
		is.User.Login = hubAccount
		g.comments[part] = append(g.comments[part], is)
		return is, http.StatusCreated
	}
	for _, all := range g.comments {
		for _, is := range all {
			if fmt.Sprint(is.ID) == part {
				is.Body = c.Body
				return is, http.StatusOK
			}
		}
	}
	return nil, http.StatusNotFound
}
