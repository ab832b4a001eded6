// Package github sends notices to GitHub, or GitHub Enterprise: as statuses of the commit that was measured, or as its check runs for a
// GitHub App, and as one comment of its pull request. Check runs and comments are edited in place. Commit and pull request are labels of
// the run.
//
// The same notice again makes the same status, a check run is found by its ID, and the comment by its first line and author: nothing is
// there twice.
package github

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// Pause is the time between two notices that GitHub asks for.
const Pause = time.Second

const (
	address     = "https://api.github.com"
	apiVersion  = "2022-11-28"
	pageSize    = 100
	maxPages    = 30
	maxAnswer   = 32 << 20    // of a page: a comment has up to 65,536 characters
	limitedWait = time.Minute // after an answer that says that there were too many requests, and not until when
)

// Settings say where GitHub is, and who speaks to it.
type Settings struct {
	post.Settings // URL: that of the API; empty means GitHub's own

	Account      string   // the account of the token, or of the App, whose comments are edited
	Repositories []string // as OWNER/NAME
	Always       bool     // comment also on what is no change
	App          App      // in place of a token: commits get check runs
}

// Receiver implements receiver.Receiver.
type Receiver struct {
	settings Settings
	client   *post.Client
	app      *installation // nil with a token
}

// New returns a Receiver. It reads the key of an App, and does not wait for GitHub.
func New(s Settings, now func() time.Time) (*Receiver, error) {
	s.URL = strings.TrimSuffix(cmp.Or(s.URL, address), "/")
	c, err := post.New(s.Settings)
	if err != nil {
		return nil, err
	}
	r := &Receiver{settings: s, client: c}
	if s.App != (App{}) {
		r.app = &installation{app: s.App, now: now}
		_, err = s.App.key()
	}
	return r, err
}

// Close closes the idle connections.
func (r *Receiver) Close() error { return r.client.Close() }

// Send implements receiver.Receiver.
func (r *Receiver) Send(ctx context.Context, n notice.Notice) (answer string, err error) {
	if n.Test {
		return r.test(ctx)
	}
	t, err := targetOf(n, r.settings.Repositories)
	if err != nil {
		return "", &receiver.RejectedError{Err: err}
	}
	var did []string
	if t.commit != "" {
		write := r.statuses
		if r.app != nil {
			write = r.checks
		}
		if did, err = write(ctx, t, n); err != nil {
			return "", err
		}
	}
	if t.pull != "" {
		what, err := r.comment(ctx, t, n)
		if err != nil {
			return "", err
		}
		did = append(did, what)
	}
	return strings.Join(did, ", "), nil
}

// statuses makes the statuses of a commit, and says what it did.
func (r *Receiver) statuses(ctx context.Context, t target, n notice.Notice) (did []string, err error) {
	for _, s := range statusesOf(n) {
		if err := r.call(ctx, http.MethodPost, "/repos/"+t.repository+"/statuses/"+t.commit, s, nil); err != nil {
			return nil, err
		}
		did = append(did, "status "+s.State+" of "+t.commit[:8])
	}
	return did, nil
}

// test reads the repositories: a test is of no commit.
func (r *Receiver) test(ctx context.Context) (answer string, err error) {
	for _, name := range r.settings.Repositories {
		if err := r.call(ctx, http.MethodGet, "/repos/"+name, nil, nil); err != nil {
			return "", fmt.Errorf("repository %s: %w", name, err)
		}
	}
	who := "the token"
	if r.app != nil {
		who = "the App"
	}
	return who + " can read " + strings.Join(r.settings.Repositories, ", ") + "; a test writes nothing", nil
}

// comment writes the notice into the comment of a pull request, and says what it did.
func (r *Receiver) comment(ctx context.Context, t target, n notice.Notice) (did string, err error) {
	is, found, err := r.find(ctx, t, n.Receiver)
	if err != nil {
		return "", r.missing(ctx, t, err)
	}
	next, had := edited(is.Body, n.Receiver, entryOf(n))
	path := "/repos/" + t.repository + "/issues/" + t.pull + "/comments"
	switch {
	case !had && !r.settings.Always && !matters(n):
		return "no comment: nothing has changed", nil
	case !found:
		return "commented on #" + t.pull, locked(r.call(ctx, http.MethodPost, path, map[string]string{"body": next}, nil))
	case is.Body == next:
		return "the comment on #" + t.pull + " has it", nil
	}
	path = "/repos/" + t.repository + "/issues/comments/" + strconv.FormatInt(is.ID, 10)
	return "edited the comment on #" + t.pull, locked(r.call(ctx, http.MethodPatch, path, map[string]string{"body": next}, nil))
}

// find returns the oldest comment of the account that begins with the mark of a receiver.
func (r *Receiver) find(ctx context.Context, t target, name string) (is comment, found bool, err error) {
	for page := 1; page <= maxPages; page++ {
		var all []comment
		path := fmt.Sprintf("/repos/%s/issues/%s/comments?per_page=%d&page=%d", t.repository, t.pull, pageSize, page)
		if err := r.call(ctx, http.MethodGet, path, nil, &all); err != nil {
			return is, false, err
		}
		for _, c := range all {
			if strings.EqualFold(c.User.Login, r.settings.Account) && strings.HasPrefix(c.Body, mark(name)) {
				return c, true, nil
			}
		}
		if len(all) < pageSize {
			break
		}
	}
	return is, false, nil
}

// missing returns the error of a pull request that cannot be read: one that does not exist never will, in a repository that can be read.
func (r *Receiver) missing(ctx context.Context, t target, err error) error {
	if away, ok := errors.AsType[*post.TemporaryError](err); !ok || away.Status != http.StatusNotFound {
		return err
	}
	if err := r.call(ctx, http.MethodGet, "/repos/"+t.repository, nil, nil); err != nil {
		return err
	}
	return &receiver.RejectedError{Err: fmt.Errorf("%s has no pull request #%s: %w", t.repository, t.pull, err)}
}

// locked returns the error of a comment. A conversation that is locked stays so.
func locked(err error) error {
	away, ok := errors.AsType[*post.TemporaryError](err)
	if ok && away.Status == http.StatusForbidden && strings.Contains(away.Text, "locked") {
		return &receiver.RejectedError{Err: err}
	}
	return err
}

// call sends a request to the API, and reads the answer into out, unless that is nil.
func (r *Receiver) call(ctx context.Context, method, path string, in, out any) error {
	req := post.Request{
		Method: method, URL: r.settings.URL + path, Limit: maxAnswer,
		Headers: headers(""),
	}
	if r.app != nil {
		authorization, err := r.app.authorization(ctx, r.client, r.settings.URL)
		if err != nil {
			return err
		}
		req.Headers = headers(authorization)
	}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return &receiver.RejectedError{Err: fmt.Errorf("write the request: %w", err)}
		}
		req.Body, req.Headers["Content-Type"] = body, "application/json"
	}
	answer, err := r.client.Send(ctx, req)
	if err != nil {
		if r.app != nil {
			r.app.refused(err)
		}
		return limited(receiver.FromPost(err))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(answer), out); err != nil {
		return fmt.Errorf("read the answer of GitHub: %w", err)
	}
	return nil
}

// headers returns the headers of a request; authorization is empty if the client has the token.
func headers(authorization string) map[string]string {
	all := map[string]string{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": apiVersion}
	if authorization != "" {
		all["Authorization"] = authorization
	}
	return all
}

// limited returns an error that waits as GitHub asks for where its answer does not say how long.
func limited(err error) error {
	away, ok := errors.AsType[*receiver.TemporaryError](err)
	if ok && away.After == 0 && strings.Contains(strings.ToLower(away.Error()), "rate limit") {
		away.After = limitedWait
	}
	return err
}
