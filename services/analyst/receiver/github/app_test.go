package github_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/github"
	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// appSettings are those of a receiver that is an App.
func appSettings(url, keyFile string) github.Settings {
	return github.Settings{
		Settings: post.Settings{URL: url}, Account: appSlug + "[bot]", Repositories: []string{repository},
		App: github.App{ID: appID, Installation: 42, KeyFile: keyFile},
	}
}

func TestTheContractOfAReceiverThatIsAnApp(t *testing.T) {
	receivertest.Run(t, func(t *testing.T, trusted receivertest.Trust) receivertest.Server {
		t.Helper()
		keys := appKeys()
		tokens := &issuer{key: keys[0].public, now: time.Now}
		server := receivertest.NewHTTPServer(t, trusted, func(r *http.Request, body []byte) int {
			name, _ := checkRoute(r)
			if !tokens.accepts(r) {
				return http.StatusUnauthorized
			}
			if name == "create" {
				_, status := readCheck(name, body)
				return status
			}
			return refusal(r, body, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}, show)
		server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, _ := checkRoute(r)
			switch {
			case tokens.answer(w, r):
			case name == "list" && tokens.accepts(r):
				_ = json.NewEncoder(w).Encode(map[string]any{"total_count": 0, "check_runs": []int{}})
			default:
				server.ServeHTTP(w, r)
			}
		})
		file := receivertest.Secret(t, keys[0].text)
		s := appSettings(server.URL, file)
		s.CAFile = server.CAFile
		to, err := github.New(s, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.Close() })
		suite := server.Suite()
		suite.Receiver, suite.NoDigests, suite.Goldens = labelled{to}, true, "testdata/check"
		suite.Inert = []string{"<!here", "<!channel", "<http", "<script", "<img", "@channel", "@here", "\u202e", "\u001b", "\r"}
		suite.Rotate = func(t *testing.T, renewed bool) {
			t.Helper()
			if tokens.revoke(keys[1].public); renewed {
				receivertest.WriteSecret(t, file, keys[1].text)
			}
		}
		return suite
	})
}

// newApp returns a receiver for a hub that is an App.
func newApp(t *testing.T, h *appHub) *github.Receiver {
	t.Helper()
	to, err := github.New(appSettings(h.server.URL, receivertest.Secret(t, appKeys()[0].text)), h.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return to
}

// committed returns a notice with the label of a commit.
func committed(n notice.Notice) notice.Notice {
	n.Labels = map[string]string{notice.LabelCommit: commit}
	return n
}

// summary returns what a check run says, by its number.
func (h *appHub) summary(id int) (title, summary string) {
	h.locked(func() { title, summary = h.checks[id-1].Output.Title, h.checks[id-1].Output.Summary })
	return title, summary
}

func TestACommitHasOneCheckRunForATaskThatSaysTheWorst(t *testing.T) {
	h := newAppHub(t)
	to := newApp(t, h)
	send(t, to, committed(endOf("01run", event.Succeeded)))
	send(t, to, committed(about("firing")))
	send(t, to, committed(endOf("02run", event.Succeeded)))
	dismissed := func(n *notice.Notice) {
		n.ID, n.First, n.Became, n.Incidents[0].State = "dismissed", "firing", incident.Dismissed, incident.Dismissed
	}
	title, summary := h.summary(1)
	golden.Check(t, "testdata/check/summary.golden", []byte(strings.ReplaceAll(title+"\n\n"+summary, "\u200b", "|")))
	send(t, to, committed(about("firing", dismissed)))
	const name = " benchmark-ai/checksums"
	wantWrites(t, h.hub, "check 1: success"+name, "edit check 1: failure"+name, "edit check 1: failure"+name, "edit check 1: success"+name)
	if title, summary = h.summary(1); !strings.HasPrefix(title, "Dismissed: ") || strings.Contains(summary, "01run") || !strings.Contains(summary, "02run") {
		t.Errorf("%s\n%s", title, summary)
	}
}

func TestANoticeThatIsSentAgainMakesNoSecondCheckRun(t *testing.T) {
	h := newAppHub(t)
	to := newApp(t, h)
	h.locked(func() { h.cutOff = "create" })
	if _, err := to.Send(t.Context(), committed(about("firing"))); !errors.Is(err, receiver.ErrUnanswered) {
		t.Fatalf("Send: %v", err)
	}
	h.locked(func() { h.cutOff = "" })
	for range 2 {
		if got := send(t, to, committed(about("firing"))); got != "check run failure of 01234567 has it" {
			t.Errorf("it answers %s", got)
		}
	}
	wantWrites(t, h.hub, "check 1: failure benchmark-ai/checksums")
}

func TestEachTaskOfANoticeHasACheckRunOfItsOwn(t *testing.T) {
	h := newAppHub(t)
	to := newApp(t, h)
	n := committed(about("firing"))
	other := receivertest.Incident("i2")
	other.Rule.Task, other.Rule.When = "other", incident.Change
	n.Incidents = append(n.Incidents, other)
	send(t, to, n)
	send(t, to, committed(endOf("01run", event.Canceled)))
	wantWrites(t, h.hub, "check 1: failure benchmark-ai/checksums", "check 2: neutral benchmark-ai/other", "edit check 1: failure benchmark-ai/checksums")
	if _, summary := h.summary(2); strings.Contains(summary, "checksums") {
		t.Errorf("the check run of the other task is\n%s", summary)
	}
}

func TestCheckRunsOfOtherAppsStayAsTheyAre(t *testing.T) {
	h := newAppHub(t)
	to := newApp(t, h)
	send(t, to, committed(about("firing")))
	h.locked(func() {
		forged := h.checks[0]
		forged.App.Slug = "eve"
		h.checks = nil
		for range 150 {
			h.checks = append(h.checks, forged)
		}
		h.writes = nil
	})
	send(t, to, committed(about("firing")))
	send(t, to, committed(about("firing", resolved)))
	wantWrites(t, h.hub, "check 151: failure benchmark-ai/checksums", "edit check 151: failure benchmark-ai/checksums")
}

func TestAnAppEditsTheCommentOfAPullRequest(t *testing.T) {
	h := newAppHub(t)
	to := newApp(t, h)
	n := about("firing")
	n.Labels[notice.LabelCommit] = commit
	if got := send(t, to, n); got != "check run failure of 01234567, commented on #7" {
		t.Errorf("it answers %s", got)
	}
	if got := send(t, to, receiverTest()); !strings.HasPrefix(got, "the App can read acme/app") {
		t.Errorf("a test answers %s", got)
	}
}

// receiverTest returns a notice that is a test.
func receiverTest() notice.Notice {
	return notice.NewTest("perf-team", "perf", "ann", "key", receivertest.Made())
}

func TestATokenIsUsedUntilShortlyBeforeItsEnd(t *testing.T) {
	h := newAppHub(t)
	now := receivertest.Made()
	h.now = func() time.Time { return now }
	to := newApp(t, h)
	for i, tt := range []struct {
		after  time.Duration
		tokens int
	}{{0, 1}, {54 * time.Minute, 1}, {55 * time.Minute, 2}, {100 * time.Minute, 2}} {
		now = receivertest.Made().Add(tt.after)
		send(t, to, committed(about(fmt.Sprint("n", i))))
		if got := h.count(); got != tt.tokens {
			t.Errorf("%d tokens after %s, want %d", got, tt.after, tt.tokens)
		}
	}
}

func TestWithoutATokenNothingIsSentAndNothingRefused(t *testing.T) {
	for name, status := range map[string]int{
		"the installation is gone": 404, "it is suspended": 403, "GitHub finds a fault": 422, "there are too many requests": 429, "GitHub is away": 502,
	} {
		t.Run(name, func(t *testing.T) {
			h := newAppHub(t)
			to := newApp(t, h)
			h.issuer.refuse = status
			_, err := to.Send(t.Context(), committed(about("firing")))
			_, temporary := errors.AsType[*receiver.TemporaryError](err)
			_, rejected := errors.AsType[*receiver.RejectedError](err)
			if !temporary || rejected || errors.Is(err, receiver.ErrUnanswered) {
				t.Errorf("Send: %v, want an error that passes", err)
			}
			h.issuer.refuse = 0
			send(t, to, committed(about("firing")))
			wantWrites(t, h.hub, "check 1: failure benchmark-ai/checksums")
		})
	}
}

func TestAKeyThatIsNoneIsSaidAtOnce(t *testing.T) {
	for name, text := range map[string]string{"no PEM": "a secret", "no key": "-----BEGIN RSA PRIVATE KEY-----\nYSBzZWNyZXQ=\n-----END RSA PRIVATE KEY-----"} {
		file := receivertest.Secret(t, text)
		_, err := github.New(appSettings("https://example.com/", file), time.Now)
		if err == nil || !strings.Contains(err.Error(), file+" has no private key of a GitHub App") || strings.Contains(err.Error(), "a secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
