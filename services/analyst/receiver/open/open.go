// Package open opens the receivers that settings name.
package open

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/alertmanager"
	"github.com/benchmark-ai/bai/services/analyst/receiver/email"
	"github.com/benchmark-ai/bai/services/analyst/receiver/github"
	"github.com/benchmark-ai/bai/services/analyst/receiver/hours"
	"github.com/benchmark-ai/bai/services/analyst/receiver/slack"
	"github.com/benchmark-ai/bai/services/analyst/receiver/webhook"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// The kinds of receivers.
const (
	kindWebhook      = "webhook"
	kindSlack        = "slack"
	kindEmail        = "email"
	kindAlertmanager = "alertmanager"
	kindGitHub       = "github"
)

// ReceiverSettings are those of a place for notices, which descriptors name. Secrets are in files, which are read for each notice. The
// gateway needs the names and namespaces alone.
type ReceiverSettings struct {
	// webhook: signed JSON; slack: an incoming webhook of Slack, Mattermost or Rocket.Chat; email: mails by SMTP; alertmanager: alerts of
	// Prometheus' Alertmanager; github: statuses or check runs of commits, and comments of pull requests
	Kind       string   `toml:"kind"`
	Namespaces []string `toml:"namespaces"` // whose descriptors may name it; empty means all
	// whose runs and alarms it gets the notices of where a descriptor notifies submitter; * is whoever no other receiver names
	Owners  []string `toml:"owners"`
	Default bool     `toml:"default"` // true: it gets the notices of alarms without notify, in its namespaces

	// notices an hour, the last of which is a digest of all that wait; zero means no limit; not of kinds alertmanager, which groups alerts
	// itself, and github
	Rate      int    `toml:"rate"`
	Quiet     string `toml:"quiet"`      // hours of the day in which nothing is sent, such as 22:00-07:00; not of kind alertmanager
	TimeZone  string `toml:"time_zone"`  // of quiet, such as Europe/Berlin; empty means UTC
	MinChange string `toml:"min_change"` // changes that are smaller are not sent, such as 5%; empty means all are
	Resolved  *bool  `toml:"resolved"`   // false: ends of incidents are not sent; true without the key; not of kind alertmanager

	// of kinds webhook and alertmanager: http:// or https:// address, without a password; of kind github: that of the API of GitHub
	// Enterprise, such as https://github.example.com/api/v3
	URL     string `toml:"url"`
	URLFile string `toml:"url_file"` // of kind slack: file with the address of the incoming webhook, which is a secret
	// of kind webhook: file with the secret that requests are signed with: 24 bytes or more, as they are, or whsec_ and base64
	SecretFile string   `toml:"secret_file"`
	Address    string   `toml:"address"` // of kind email: host:port of the SMTP server
	TLS        string   `toml:"tls"`     // of kind email: starttls, tls, or none for loopback addresses; empty means starttls
	From       string   `toml:"from"`    // of kind email: address of the sender
	To         []string `toml:"to"`      // of kind email: addresses of the recipients
	// for authentication; not of kind slack; of kind github: the account of the token, or of the App, whose comments are edited
	Username     string `toml:"username"`
	PasswordFile string `toml:"password_file"` // file with that user's password
	// of kinds webhook and alertmanager: file with a bearer token, instead of a user; of kind github: file with the token
	TokenFile string `toml:"token_file"`
	// of kind github, in place of a token: a GitHub App, by its client ID or its number, which makes check runs of commits
	AppID          string `toml:"app_id"`
	InstallationID int64  `toml:"installation_id"`  // of that App, at the owner of the repositories
	PrivateKeyFile string `toml:"private_key_file"` // PEM file with a private key of that App
	// of kind github: OWNER/NAME of those that are written to; label repository of a run is the NAME of one, and need not be there if there
	// is one only
	Repositories []string `toml:"repositories"`
	Always       bool     `toml:"always"` // of kind github: comment on the end of each run, not of those that failed alone
	// PEM file of the authorities that the server's certificate is checked with; empty means the system's
	CAFile  string        `toml:"ca_file"`
	Timeout time.Duration `toml:"timeout"` // of one notice; zero means 30 s
}

// Settings are the receivers by the names that descriptors use.
type Settings map[string]ReceiverSettings

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	valid := regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !valid.MatchString(name) || name == "submitter" {
			errs = append(errs, fmt.Errorf("receivers.%s: no descriptor can have this name: write letters, digits, - and _, and not submitter", name))
		}
		errs = append(errs, s[name].validate("receivers."+name))
	}
	return errors.Join(errs...)
}

func (r ReceiverSettings) validate(at string) error {
	errs := []error{r.validateRules(at)}
	switch r.Kind {
	case kindWebhook:
		errs = append(errs, r.unused(at, "url_file", "address", "tls", "from", "to", "repositories", "always"), r.post().Validate(at))
		if r.SecretFile == "" {
			errs = append(errs, fmt.Errorf("%s.secret_file: is needed: who receives requests knows by their signature whose they are", at))
		}
	case kindSlack:
		errs = append(errs, r.unused(at, "url", "secret_file", "address", "tls", "from", "to", "username", "password_file",
			"token_file", "repositories", "always"))
		if r.URLFile == "" {
			errs = append(errs, fmt.Errorf("%s.url_file: is needed: the file with the address of the incoming webhook", at))
		}
	case kindEmail:
		errs = append(errs, r.unused(at, "url", "url_file", "secret_file", "token_file", "repositories", "always"), r.validateEmail(at))
	case kindAlertmanager:
		errs = append(errs, r.unused(at, "url_file", "secret_file", "address", "tls", "from", "to", "rate", "quiet", "resolved",
			"repositories", "always"), r.post().Validate(at))
	case kindGitHub:
		errs = append(errs, r.unused(at, "url_file", "secret_file", "address", "tls", "from", "to", "password_file", "rate"),
			r.validateGitHub(at))
	default:
		errs = append(errs, fmt.Errorf("%s.kind: %q, want webhook, slack, email, alertmanager or github", at, r.Kind))
	}
	if r.Timeout < 0 {
		errs = append(errs, fmt.Errorf("%s.timeout: must not be negative", at))
	}
	return errors.Join(errs...)
}

func (r ReceiverSettings) validateRules(at string) error {
	var errs []error
	if r.Rate < 0 {
		errs = append(errs, fmt.Errorf("%s.rate: must not be negative", at))
	}
	if _, err := hours.Parse(r.Quiet, r.TimeZone); err != nil {
		errs = append(errs, fmt.Errorf("%s.quiet: %w", at, err))
	}
	if r.Quiet == "" && r.TimeZone != "" {
		errs = append(errs, fmt.Errorf("%s.time_zone: is that of quiet, which is not set", at))
	}
	if _, err := share(r.MinChange); err != nil {
		errs = append(errs, fmt.Errorf("%s.min_change: %w", at, err))
	}
	if slices.Contains(r.Owners, "") {
		errs = append(errs, fmt.Errorf("%s.owners: an owner without a name", at))
	}
	return errors.Join(errs...)
}

func (r ReceiverSettings) validateEmail(at string) error {
	var errs []error
	host, port, err := net.SplitHostPort(r.Address)
	if n, errPort := strconv.Atoi(port); err != nil || host == "" || errPort != nil || n < 1 || n > 65535 {
		errs = append(errs, fmt.Errorf("%s.address: %q, want host:port such as mail.example.com:587", at, r.Address))
	}
	if !slices.Contains([]string{"", email.STARTTLS, email.TLS, email.Plain}, r.TLS) {
		errs = append(errs, fmt.Errorf("%s.tls: %q, want starttls, tls or none", at, r.TLS))
	}
	if r.TLS == email.Plain && !loopback(host) {
		errs = append(errs, fmt.Errorf("%s.tls: none is for loopback addresses alone: use starttls or tls for %s", at, host))
	}
	if _, err := mail.ParseAddress(r.From); err != nil {
		errs = append(errs, fmt.Errorf("%s.from: %q, want an address such as bai@example.com", at, r.From))
	}
	if len(r.To) == 0 {
		errs = append(errs, fmt.Errorf("%s.to: is needed: the addresses of the recipients", at))
	}
	for _, to := range r.To {
		if _, err := mail.ParseAddress(to); err != nil {
			errs = append(errs, fmt.Errorf("%s.to: %q, want an address such as perf@example.com", at, to))
		}
	}
	if (r.Username == "") != (r.PasswordFile == "") {
		errs = append(errs, fmt.Errorf("%s: username and password_file go together", at))
	}
	return errors.Join(errs...)
}

func (r ReceiverSettings) validateGitHub(at string) error {
	var errs []error
	if r.URL != "" {
		errs = append(errs, post.Settings{URL: r.URL}.Validate(at))
	}
	errs = append(errs, r.validateApp(at))
	if r.Username == "" {
		errs = append(errs, fmt.Errorf("%s.username: is needed: the account of the token, whose comments are edited", at))
	}
	if len(r.Repositories) == 0 {
		errs = append(errs, fmt.Errorf("%s.repositories: is needed: those that are written to, as OWNER/NAME", at))
	}
	valid := regexp.MustCompile(`^[A-Za-z0-9-]{1,100}/[A-Za-z0-9._-]{1,100}$`)
	seen := map[string]bool{}
	for _, name := range r.Repositories {
		short := strings.ToLower(name[strings.Index(name, "/")+1:])
		if seen[short] {
			errs = append(errs, fmt.Errorf("%s.repositories: two of the name %q: make a receiver for each", at, short))
		}
		seen[short] = true
		if !valid.MatchString(name) || strings.HasSuffix(name, "/.") || strings.HasSuffix(name, "/..") {
			errs = append(errs, fmt.Errorf("%s.repositories: %q, want OWNER/NAME", at, name))
		}
	}
	return errors.Join(errs...)
}

// validateApp checks who speaks to GitHub: the owner of a token, or an App.
func (r ReceiverSettings) validateApp(at string) error {
	app := r.AppID != "" || r.InstallationID != 0 || r.PrivateKeyFile != ""
	if !app && r.TokenFile == "" {
		return fmt.Errorf("%s.token_file: is needed: the file with the token; or app_id, installation_id and private_key_file of a GitHub App", at)
	}
	var errs []error
	if app && r.TokenFile != "" {
		errs = append(errs, fmt.Errorf("%s: token_file or a GitHub App, not both", at))
	}
	if app && (r.AppID == "" || r.InstallationID == 0 || r.PrivateKeyFile == "") {
		errs = append(errs, fmt.Errorf("%s: app_id, installation_id and private_key_file go together", at))
	}
	if r.InstallationID < 0 {
		errs = append(errs, fmt.Errorf("%s.installation_id: must not be negative", at))
	}
	if app && r.Username != "" && !strings.HasSuffix(r.Username, "[bot]") {
		errs = append(errs, fmt.Errorf("%s.username: %q, want the account of the App: its name in URLs with [bot] after it", at, r.Username))
	}
	owner := func(name string) string { return strings.ToLower(name[:max(0, strings.Index(name, "/"))]) }
	for _, name := range r.Repositories {
		if app && owner(name) != owner(r.Repositories[0]) {
			errs = append(errs, fmt.Errorf("%s.repositories: %q is of another owner: an installation is of one, make a receiver for each", at, name))
		}
	}
	return errors.Join(errs...)
}

// loopback reports whether a host is this machine by its name. The receiver checks the address that it connects to.
func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// unused returns an error for each of the keys that is set, which the kind does not have.
func (r ReceiverSettings) unused(at string, keys ...string) error {
	set := map[string]bool{
		"url": r.URL != "", "url_file": r.URLFile != "", "secret_file": r.SecretFile != "", "address": r.Address != "", "tls": r.TLS != "",
		"from": r.From != "", "to": len(r.To) > 0, "username": r.Username != "", "password_file": r.PasswordFile != "",
		"token_file": r.TokenFile != "", "rate": r.Rate != 0, "quiet": r.Quiet != "", "resolved": r.Resolved != nil,
		"repositories": len(r.Repositories) > 0, "always": r.Always,
		"app_id": r.AppID != "", "installation_id": r.InstallationID != 0, "private_key_file": r.PrivateKeyFile != "",
	}
	if r.Kind != kindGitHub {
		keys = append(keys, "app_id", "installation_id", "private_key_file")
	}
	var errs []error
	for _, key := range keys {
		if set[key] {
			errs = append(errs, fmt.Errorf("%s.%s: kind %s has no %s", at, key, r.Kind, key))
		}
	}
	return errors.Join(errs...)
}

// share reads a percentage such as 5%.
func share(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0 && v <= 1e6) {
		return 0, fmt.Errorf("%q, want a percentage such as 5%%", text)
	}
	return v / 100, nil
}

func (r ReceiverSettings) post() post.Settings {
	return post.Settings{
		URL: r.URL, Username: r.Username, PasswordFile: r.PasswordFile, TokenFile: r.TokenFile,
		CAFile: r.CAFile, Timeout: max(r.Timeout, 0),
	}
}

// Channels opens all receivers, sorted by name, without connecting to any, and returns a function that closes them.
func Channels(s Settings, now func() time.Time) ([]receiver.Channel, func() error, error) {
	var all []receiver.Channel
	var opened []io.Closer
	end := func() error {
		var errs []error
		for _, c := range opened {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		to, err := s[name].open(now)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open receiver %s: %w", name, err), end())
		}
		if c, ok := to.(io.Closer); ok {
			opened = append(opened, c)
		}
		rules, err := s[name].rules()
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open receiver %s: %w", name, err), end())
		}
		all = append(all, receiver.Channel{Name: name, Receiver: to, Rules: rules})
	}
	return all, end, nil
}

// open opens a receiver.
func (r ReceiverSettings) open(now func() time.Time) (receiver.Receiver, error) { //nolint:ireturn // of one of the kinds
	switch r.Kind {
	case kindWebhook:
		return webhook.New(webhook.Settings{Settings: r.post(), SecretFile: r.SecretFile}, now)
	case kindSlack:
		return slack.New(slack.Settings{URLFile: r.URLFile, CAFile: r.CAFile, Timeout: r.Timeout})
	case kindEmail:
		return email.New(email.Settings{
			Address: r.Address, TLS: r.TLS, From: r.From, To: r.To, Username: r.Username, PasswordFile: r.PasswordFile,
			CAFile: r.CAFile, Timeout: r.Timeout,
		})
	case kindAlertmanager:
		return alertmanager.New(r.post(), now)
	case kindGitHub:
		to := r.post()
		to.Username = "" // the token says whose it is, and the App who it is
		return github.New(github.Settings{
			Settings: to, Account: r.Username, Repositories: r.Repositories, Always: r.Always,
			App: github.App{ID: r.AppID, Installation: r.InstallationID, KeyFile: r.PrivateKeyFile},
		}, now)
	}
	return nil, fmt.Errorf("kind %q, want webhook, slack, email, alertmanager or github", r.Kind)
}

func (r ReceiverSettings) rules() (receiver.Rules, error) {
	quiet, err := hours.Parse(r.Quiet, r.TimeZone)
	if err != nil {
		return receiver.Rules{}, err
	}
	least, err := share(r.MinChange)
	rules := receiver.Rules{
		Namespaces: r.Namespaces, Rate: r.Rate, Quiet: quiet, MinChange: least, SkipResolved: r.Resolved != nil && !*r.Resolved,
	}
	switch r.Kind {
	case kindSlack:
		rules.Pause = slack.Pause
	case kindGitHub:
		rules.Pause = github.Pause
	case kindAlertmanager:
		rules.Repeat, rules.SkipEnds = alertmanager.Repeat, true
	}
	return rules, err
}
