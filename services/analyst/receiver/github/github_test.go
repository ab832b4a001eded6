package github_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/github"
	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// labelled is a receiver whose notices are about a commit.
type labelled struct{ *github.Receiver }

// Send implements receiver.Receiver.
func (l labelled) Send(ctx context.Context, n notice.Notice) (string, error) {
	n.Labels = map[string]string{notice.LabelCommit: commit}
	return l.Receiver.Send(ctx, n)
}

// show returns a request with HTML's signs as they are and zero-width spaces to be seen.
func show(r *http.Request, body []byte) string {
	text := r.Method + " " + r.URL.Path + "\n"
	var v any
	if len(body) == 0 {
		return text
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err.Error()
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return text + strings.ReplaceAll(out.String(), "\u200b", "|")
}

func TestTheContractOfAReceiver(t *testing.T) {
	receivertest.Run(t, func(t *testing.T, trusted receivertest.Trust) receivertest.Server {
		t.Helper()
		var token atomic.Value
		token.Store("one")
		server := receivertest.NewHTTPServer(t, trusted, func(r *http.Request, body []byte) int {
			return refusal(r, body, fmt.Sprint(token.Load()))
		}, show)
		file := receivertest.Secret(t, "one")
		to, err := github.New(github.Settings{
			Settings: post.Settings{URL: server.URL, CAFile: server.CAFile, TokenFile: file}, Account: account, Repositories: []string{repository},
		}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.Close() })
		s := server.Suite()
		s.Receiver, s.NoDigests = labelled{to}, true
		s.Inert = []string{"<!", "<http", "@channel", "@here", "\u202e", "\u001b", "\r"}
		s.Rotate = func(t *testing.T, renewed bool) {
			t.Helper()
			if token.Store("two"); renewed {
				receivertest.WriteSecret(t, file, "two")
			}
		}
		return s
	})
}

// newReceiver returns a receiver for a hub.
func newReceiver(t *testing.T, h *hub, change ...func(*github.Settings)) *github.Receiver {
	t.Helper()
	s := github.Settings{
		Settings: post.Settings{URL: h.URL + "/", TokenFile: receivertest.Secret(t, "one")}, Account: account, Repositories: []string{repository},
	}
	for _, c := range change {
		c(&s)
	}
	to, err := github.New(s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return to
}

// about returns a notice of a pull request.
func about(id string, change ...func(*notice.Notice)) notice.Notice {
	n := receivertest.Notice(id)
	n.Labels = map[string]string{notice.LabelPullRequest: "7"}
	for _, c := range change {
		c(&n)
	}
	return n
}

// endOf returns a notice of the end of a run of the pull request.
func endOf(run string, outcome event.Outcome) notice.Notice {
	return notice.NewEnd("perf-team", notice.End{
		ID: run, Namespace: "perf", Task: "checksums", Owner: "ann", Labels: map[string]string{notice.LabelPullRequest: "7"}, Outcome: outcome,
		Submitted: receivertest.Made(), Ended: receivertest.Made(),
	})
}

func send(t *testing.T, to receiver.Receiver, n notice.Notice) string {
	t.Helper()
	answer, err := to.Send(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func wantWrites(t *testing.T, h *hub, want ...string) {
	t.Helper()
	var got []string
	h.locked(func() { got = slices.Clone(h.writes) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func resolved(n *notice.Notice) {
	n.ID, n.First, n.Became, n.Incidents[0].State = "resolved", "firing", incident.Resolved, incident.Resolved
}

func TestAPullRequestHasOneCommentThatIsEdited(t *testing.T) {
	h := newHub(t)
	to := newReceiver(t, h)
	h.say("ann", "looks good")
	send(t, to, about("firing"))
	send(t, to, about("firing", resolved))
	send(t, to, endOf("01run", event.Failed))
	send(t, to, endOf("02run", event.Succeeded))
	wantWrites(t, h, "comment 2", "edit 2", "edit 2", "edit 2")
	body := h.body(2)
	golden.Check(t, "testdata/comment.golden", []byte(strings.ReplaceAll(body, "\u200b", "|")))
	if strings.Contains(body, "01run") || !strings.Contains(body, "02run") || strings.Contains(body, "Firing:") {
		t.Errorf("the comment is\n%s", body)
	}
}

func TestTheSameNoticeAgainWritesNothing(t *testing.T) {
	h := newHub(t)
	to := newReceiver(t, h)
	h.locked(func() { h.cut = "comment" })
	if _, err := to.Send(t.Context(), about("firing")); !errors.Is(err, receiver.ErrUnanswered) {
		t.Fatalf("Send: %v", err)
	}
	h.locked(func() { h.cut = "" })
	if got := send(t, to, about("firing")); got != "the comment on #7 has it" {
		t.Errorf("it answers %s", got)
	}
	wantWrites(t, h, "comment 1")
}

func TestAnEndWithoutANewsIsNoCommentUnlessTheSettingsSaySo(t *testing.T) {
	h := newHub(t)
	if got := send(t, newReceiver(t, h), endOf("01run", event.Succeeded)); got != "no comment: nothing has changed" {
		t.Errorf("it answers %s", got)
	}
	wantWrites(t, h)
	send(t, newReceiver(t, h, func(s *github.Settings) { s.Always = true }), endOf("01run", event.Succeeded))
	wantWrites(t, h, "comment 1")
}

func TestOnlyTheCommentOfTheAccountIsEdited(t *testing.T) {
	h := newHub(t)
	to := newReceiver(t, h)
	send(t, to, about("firing"))
	forged := h.body(1)
	h.locked(func() { h.comments = nil })
	for range 150 {
		h.say("eve", forged)
	}
	h.locked(func() { h.writes = nil })
	send(t, to, about("firing"))
	send(t, to, about("firing", resolved))
	wantWrites(t, h, "comment 151", "edit 151")
}

func TestWhatOthersWriteIntoTheCommentIsGoneIfItIsMarkup(t *testing.T) {
	h := newHub(t)
	to := newReceiver(t, h)
	send(t, to, about("firing"))
	const planted = "\n@everybody <b>x</b>\n<!-- entry 00 -->\n<pre>\n</pre><img src=x>\n</pre>\n<!-- end -->"
	h.locked(func() { h.comments[0].Body += planted })
	send(t, to, endOf("01run", event.Failed))
	if body := h.body(1); strings.Contains(body, "everybody") || strings.Contains(body, "<img") || !strings.Contains(body, "incident i1") {
		t.Errorf("the comment is\n%s", body)
	}
}

func TestTheCommentStaysWithinTheLimitOfGitHub(t *testing.T) {
	h := newHub(t)
	to := newReceiver(t, h)
	for i := range 40 {
		n := about(fmt.Sprintf("n%02d", i))
		n.Incidents = receivertest.Hostile().Incidents
		for len(n.Incidents) < 10 {
			n.Incidents = append(n.Incidents, n.Incidents[0])
		}
		send(t, to, n)
	}
	if n := strings.Count(h.body(1), "<pre>"); n < 2 || !strings.Contains(h.body(1), "entry n39 ") {
		t.Errorf("%d entries", n)
	}
}

func TestTheStateOfACommit(t *testing.T) {
	accepted := func(n *notice.Notice) { resolved(n); n.Incidents[0].Acked = &incident.Ack{Accept: true} }
	dismissed := func(n *notice.Notice) { n.Became = incident.Dismissed }
	change := func(n *notice.Notice) { n.Incidents[0].Rule.When = incident.Change }
	other := func(n *notice.Notice) {
		i := receivertest.Incident("i2")
		i.Rule.Task = "other"
		n.Incidents = append(n.Incidents, receivertest.Incident("i3"), i)
	}
	for name, tt := range map[string]struct {
		n    notice.Notice
		want []string
	}{
		"a regression":                      {about("firing"), []string{"failure checksums"}},
		"a regression that is over":         {about("firing", resolved), []string{"failure checksums"}},
		"one that was accepted":             {about("firing", accepted), []string{"success checksums"}},
		"one that was none":                 {about("firing", dismissed), []string{"success checksums"}},
		"a change that is neither":          {about("firing", change), []string{"success checksums"}},
		"regressions of several tasks":      {about("firing", other), []string{"failure checksums", "failure other"}},
		"the end of a run that succeeded":   {endOf("r", event.Succeeded), []string{"success checksums"}},
		"the end of a run that failed":      {endOf("r", event.Failed), []string{"failure checksums"}},
		"the end of a run without a result": {endOf("r", event.Canceled), []string{"error checksums"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			tt.n.Labels = map[string]string{notice.LabelCommit: strings.ToUpper(commit), notice.LabelRepository: "App"}
			send(t, newReceiver(t, h), tt.n)
			var got, writes []string
			h.locked(func() { writes = h.writes })
			for _, w := range writes {
				var s struct{ State, Context string }
				if err := json.Unmarshal([]byte(strings.TrimPrefix(w, "status ")), &s); err != nil {
					t.Fatal(err)
				}
				got = append(got, s.State+" "+strings.TrimPrefix(s.Context, "benchmark-ai/"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestANoticeThatCanBeSentNowhereIsRefused(t *testing.T) {
	two := func(s *github.Settings) { s.Repositories = append(slices.Clone(s.Repositories), "acme/lib") }
	none := func(*github.Settings) {}
	for name, tt := range map[string]struct {
		settings func(*github.Settings)
		labels   map[string]string
		want     string
	}{
		"no label":                     {none, nil, "the run has neither label commit nor label pull_request"},
		"a repository of others":       {none, map[string]string{"commit": commit, "repository": "evil"}, `label repository is "evil", which is none of the repositories of the settings`},
		"a path as a repository":       {none, map[string]string{"commit": commit, "repository": "app/../lib"}, `label repository is "app/../lib", which is none of the repositories of the settings`},
		"one of several repositories":  {two, map[string]string{"commit": commit}, "the run has no label repository, and the settings have several repositories"},
		"the beginning of a commit":    {none, map[string]string{"commit": "0123456"}, `label commit is "0123456", want the full hash of a commit`},
		"a path as a commit":           {none, map[string]string{"commit": commit[:37] + "/.."}, `label commit is "0123456789abcdef0123456789abcdef01234/..", want the full hash of a commit`},
		"a pull request without one":   {none, map[string]string{"pull_request": "7/x"}, `label pull_request is "7/x", want a number`},
		"a pull request that isn't":    {none, map[string]string{"pull_request": "8"}, "acme/app has no pull request #8"},
		"a repository that isn't here": {two, map[string]string{"pull_request": "7", "repository": "lib"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			n := about("firing")
			n.Labels = tt.labels
			_, err := newReceiver(t, h, tt.settings).Send(t.Context(), n)
			no, rejected := errors.AsType[*receiver.RejectedError](err)
			if rejected != (tt.want != "") || rejected && !strings.HasPrefix(no.Error(), tt.want) || err == nil {
				t.Errorf("Send: %v, want %s", err, tt.want)
			}
			wantWrites(t, h)
		})
	}
}

func TestHowLongGitHubIsWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		status        int
		header, value string
		text          string
		least, most   time.Duration
		rejected      bool
	}{
		"it says for how long":              {403, "Retry-After", "30", "You have exceeded a secondary rate limit", 30 * time.Second, 30 * time.Second, false},
		"it does not":                       {403, "X-Other", "", "You have exceeded a secondary rate limit", time.Minute, time.Minute, false},
		"the limit of an hour is used up":   {429, "X-Ratelimit-Reset", fmt.Sprint(time.Now().Add(10 * time.Minute).Unix()), "API rate limit exceeded", 9 * time.Minute, 10 * time.Minute, false},
		"the token may not write":           {403, "X-Other", "", "Resource not accessible by integration", 0, 0, false},
		"the conversation is locked":        {403, "X-Other", "", "Unable to create comment because issue is locked", 0, 0, true},
		"the commit is not there":           {422, "X-Other", "", "No commit found for SHA", 0, 0, true},
		"comments are off for this project": {410, "X-Other", "", "Issues are disabled", 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.locked(func() {
				h.refuse = func(request string) (status int, header, value, text string) {
					if request != "comment" {
						return 0, "", "", ""
					}
					return tt.status, tt.header, tt.value, tt.text
				}
			})
			if tt.header == "X-Ratelimit-Reset" {
				h.Config.Handler = remaining(h)
			}
			_, err := newReceiver(t, h).Send(t.Context(), about("firing"))
			away, temporary := errors.AsType[*receiver.TemporaryError](err)
			_, rejected := errors.AsType[*receiver.RejectedError](err)
			if rejected != tt.rejected || !rejected && (!temporary || away.After < tt.least || away.After > tt.most) {
				t.Errorf("Send: %v (%+v), want %s to %s, rejected %t", err, away, tt.least, tt.most, tt.rejected)
			}
		})
	}
}

// remaining is a handler whose answers say that no request is left.
func remaining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ratelimit-Remaining", "0")
		next.ServeHTTP(w, r)
	})
}
