// Package receivers gives a test places for notices that are strict about what they take, and that can be told to fail: a webhook that
// checks signatures, an incoming webhook of Slack's kind, a mail server with STARTTLS and AUTH, GitHub, and Alertmanager, the real one
// where real servers are asked for.
package receivers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Fault is what a server does with requests.
type Fault int

// Faults.
const (
	None   Fault = iota
	Busy         // it asks to wait
	Broken       // it has a fault that passes
	Cut          // it takes the notice, and the connection ends before the answer
	Away         // the connection ends at once
)

// Arrival is a notice that a server took.
type Arrival struct {
	Notice string // its ID
	Became string // firing, resolved, dismissed or ended; empty where the server cannot tell
	Again  bool   // it says that it may have come before
	Text   string
}

// log has what a server took, and what it does.
type log struct {
	mu       sync.Mutex
	fault    Fault
	arrivals []Arrival
	faults   []string
}

// Fail makes the server behave in a way from now on.
func (l *log) Fail(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// Arrivals returns the notices that came, in order.
func (l *log) Arrivals() []Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Arrival(nil), l.arrivals...)
}

// Faults describes the requests that no such server takes.
func (l *log) Faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.faults...)
}

func (l *log) doing() Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

func (l *log) add(a Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals = append(l.arrivals, a)
}

func (l *log) refuse(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// Server is a place that can fail.
type Server interface {
	// Fail makes the server behave in a way from now on.
	Fail(f Fault)
	// Faults describes the requests that no such server takes.
	Faults() []string
}

// Servers are one of each kind.
type Servers struct {
	Webhook      *Webhook
	Slack        *Slack
	Mail         *Mail
	GitHub       *GitHub
	Alertmanager *Alertmanager

	// Settings are those of a platform with the receivers hook, chat, mail, hub and pager.
	Settings map[string]any
}

// Names are those of the receivers in the settings, as an array of TOML.
const Names = `["hook", "chat", "mail", "hub", "pager"]`

// Start starts servers, which end with the test.
func Start(t *testing.T) *Servers {
	t.Helper()
	s := &Servers{
		Webhook: startWebhook(t), Slack: startSlack(t), Mail: startMail(t), GitHub: startGitHub(t),
		Alertmanager: startAlertmanager(t),
	}
	s.Settings = map[string]any{
		"hook": s.Webhook.settings(t), "chat": s.Slack.settings(t), "mail": s.Mail.settings(t), "hub": s.GitHub.settings(t),
		"pager": s.Alertmanager.settings(),
	}
	return s
}

// All returns the servers by the names of their receivers.
func (s *Servers) All() map[string]Server {
	return map[string]Server{"hook": s.Webhook, "chat": s.Slack, "mail": s.Mail, "hub": s.GitHub, "pager": s.Alertmanager}
}

// Faults describes the requests that no such servers take.
func (s *Servers) Faults() (all []string) {
	for name, one := range s.All() {
		for _, text := range one.Faults() {
			all = append(all, name+": "+text)
		}
	}
	return all
}

// secret writes a file with a secret, and returns its path.
func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// again reports whether the text of a notice says that it may have come before.
func again(text string) bool { return strings.Contains(text, "Sent again after an interruption") }

// became returns the state that the title of a notice begins with.
func became(title string) string {
	state, _, _ := strings.Cut(title, ":")
	return strings.ToLower(state)
}
