package github_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"unicode/utf8"
)

const (
	commit     = "0123456789abcdef0123456789abcdef01234567"
	repository = "acme/app"
	account    = "bai-bot"
)

// paths are those of the API that are used, as GitHub documents them.
var paths = map[string]*regexp.Regexp{
	"repository": regexp.MustCompile(`^GET /repos/([\w-]+/[\w.-]+)$`),
	"status":     regexp.MustCompile(`^POST /repos/([\w-]+/[\w.-]+)/statuses/([0-9a-f]{40})$`),
	"comments":   regexp.MustCompile(`^GET /repos/([\w-]+/[\w.-]+)/issues/(\d+)/comments$`),
	"comment":    regexp.MustCompile(`^POST /repos/([\w-]+/[\w.-]+)/issues/(\d+)/comments$`),
	"edit":       regexp.MustCompile(`^PATCH /repos/([\w-]+/[\w.-]+)/issues/comments/(\d+)$`),
}

// route returns the name and the parts of the path of a request; "" for an unknown one.
func route(r *http.Request) (name string, parts []string) {
	for name, path := range paths {
		if parts := path.FindStringSubmatch(r.Method + " " + r.URL.Path); parts != nil {
			return name, parts[1:]
		}
	}
	return "", nil
}

// refusal returns the status with which GitHub refuses a request, 0 for none.
func refusal(r *http.Request, body []byte, token string) int {
	name, _ := route(r)
	switch {
	case name == "":
		return http.StatusNotFound
	case r.Header.Get("Authorization") != "Bearer "+token:
		return http.StatusUnauthorized
	case r.Header.Get("User-Agent") == "":
		return http.StatusForbidden
	case r.Header.Get("Accept") != "application/vnd.github+json" || r.Header.Get("X-Github-Api-Version") != "2022-11-28":
		return http.StatusBadRequest
	}
	return refusedBody(name, body)
}

func refusedBody(name string, body []byte) int {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	switch name {
	case "status":
		var s struct {
			State       string `json:"state"`
			TargetURL   string `json:"target_url"`
			Description string `json:"description"`
			Context     string `json:"context"`
		}
		if d.Decode(&s) != nil {
			return http.StatusBadRequest
		}
		states := map[string]bool{"error": true, "failure": true, "pending": true, "success": true}
		if !states[s.State] || utf8.RuneCountInString(s.Description) > 140 || utf8.RuneCountInString(s.Context) > 255 {
			return http.StatusUnprocessableEntity
		}
	case "comment", "edit":
		var c struct {
			Body string `json:"body"`
		}
		if d.Decode(&c) != nil {
			return http.StatusBadRequest
		}
		if c.Body == "" || utf8.RuneCountInString(c.Body) > 65536 {
			return http.StatusUnprocessableEntity
		}
	}
	return 0
}

// remark is a comment of the pull request.
type remark struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

// hub is GitHub with one pull request, 7.
type hub struct {
	*httptest.Server

	mu       sync.Mutex
	comments []remark
	writes   []string // what was written, in order
	refuse   func(name string) (status int, header, value, text string)
	cut      string // name of the requests whose answer is cut off
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// locked runs do while the hub answers nothing.
func (h *hub) locked(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// body returns the text of a comment, by its number.
func (h *hub) body(id int) (text string) {
	h.locked(func() { text = h.comments[id-1].Body })
	return text
}

// say adds a comment of a user.
func (h *hub) say(user, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := remark{ID: int64(len(h.comments) + 1), Body: text}
	c.User.Login = user
	h.comments = append(h.comments, c)
}

// ServeHTTP implements http.Handler.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if status := refusal(r, body, "one"); status != 0 {
		http.Error(w, `{"message":"no"}`, status)
		return
	}
	name, parts := route(r)
	if h.refuse != nil {
		if status, header, value, text := h.refuse(name); status != 0 {
			w.Header().Set(header, value)
			http.Error(w, text, status)
			return
		}
	}
	if parts[0] != repository || (name == "comment" || name == "comments") && parts[1] != "7" {
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
		return
	}
	answer, status := h.handle(name, parts, r, body)
	if h.cut == name {
		panic(http.ErrAbortHandler) //nolint:forbidigo // how net/http ends a connection without an answer
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// handle does what a request asks for.
func (h *hub) handle(name string, parts []string, r *http.Request, body []byte) (answer any, status int) {
	var in remark
	if len(body) > 0 {
		_ = json.Unmarshal(body, &in)
	}
	switch name {
	case "status":
		h.writes = append(h.writes, "status "+string(body))
		return map[string]int{"id": 1}, http.StatusCreated
	case "comments":
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if size < 1 || size > 100 || page < 1 {
			return nil, http.StatusUnprocessableEntity
		}
		begin := min((page-1)*size, len(h.comments))
		return h.comments[begin:min(begin+size, len(h.comments))], http.StatusOK
	case "comment":
		in.ID, in.User.Login = int64(len(h.comments)+1), account
		h.comments = append(h.comments, in)
		h.writes = append(h.writes, fmt.Sprintf("comment %d", in.ID))
		return in, http.StatusCreated
	case "edit":
		id, _ := strconv.Atoi(parts[1])
		if id < 1 || id > len(h.comments) {
			return nil, http.StatusNotFound
		}
		h.comments[id-1].Body = in.Body
		h.writes = append(h.writes, fmt.Sprintf("edit %d", id))
		return h.comments[id-1], http.StatusOK
	}
	return map[string]string{"full_name": repository}, http.StatusOK
}
