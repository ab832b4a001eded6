// Package email sends notices as mails by SMTP: as text and HTML, with a picture of the newest values. Connections are encrypted, but for
// those to the machine itself. The Message-ID follows from the notice, so that mail systems recognize one that is sent again.
package email

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// How a connection is encrypted.
const (
	STARTTLS = "starttls"
	TLS      = "tls"
	Plain    = "none" // to loopback addresses alone
)

// Settings say which server takes mails, and for whom they are.
type Settings struct {
	Address      string // host:port
	TLS          string // starttls, tls or none; empty means starttls
	From         string
	To           []string
	Username     string // empty means without authentication
	PasswordFile string // read for each notice
	CAFile       string // empty means the system's authorities
	Timeout      time.Duration
}

// Receiver implements receiver.Receiver.
type Receiver struct {
	settings Settings
	host     string
	port     int
	tls      *tls.Config
}

// New returns a Receiver. It reads the password and the authorities, to fail at once if there are none, and does not wait for the server.
func New(s Settings) (*Receiver, error) {
	s.TLS, s.Timeout = cmp.Or(s.TLS, STARTTLS), cmp.Or(s.Timeout, 30*time.Second)
	host, text, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("port %q of %s: %w", text, s.Address, err)
	}
	if s.Username != "" {
		if _, err := post.Secret(s.PasswordFile); err != nil {
			return nil, err
		}
	}
	r := &Receiver{settings: s, host: host, port: port, tls: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of %s: %w", s.Address, err)
		}
		r.tls.RootCAs = x509.NewCertPool()
		if !r.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the authorities of %s: %s holds no certificate in PEM", s.Address, s.CAFile)
		}
	}
	return r, nil
}

// Send implements receiver.Receiver.
func (r *Receiver) Send(ctx context.Context, n notice.Notice) (answer string, err error) {
	m, err := mailOf(n, r.settings.From, r.settings.To)
	if err != nil {
		return "", &receiver.RejectedError{Err: err}
	}
	d := dialer{receiver: r}
	defer d.close()
	defer context.AfterFunc(ctx, d.close)() // the library waits for the server, whatever becomes of ctx
	c, err := r.client(&d)
	if err != nil {
		return "", err
	}
	if err := c.DialWithContext(ctx); err != nil {
		return "", fmt.Errorf("connect to %s: %w", r.settings.Address, err)
	}
	err = c.Send(m)
	if m.IsDelivered() { // the end of the connection may fail
		return m.ServerResponse(), nil
	}
	return "", classify(err)
}

// client returns a client for one mail.
func (r *Receiver) client(d *dialer) (*mail.Client, error) {
	s := r.settings
	options := []mail.Option{
		mail.WithPort(r.port), mail.WithTimeout(s.Timeout), mail.WithTLSConfig(r.tls), mail.WithDialContextFunc(d.dial),
		mail.WithTLSPolicy(mail.TLSMandatory),
	}
	switch s.TLS {
	case TLS:
		options = append(options, mail.WithSSL())
	case Plain:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	}
	if s.Username != "" {
		password, err := post.Secret(s.PasswordFile)
		if err != nil {
			return nil, err
		}
		options = append(options, mail.WithSMTPAuthCustom(&auth{host: r.host, username: s.Username, password: password}))
	}
	c, err := mail.NewClient(r.host, options...)
	if err != nil {
		return nil, fmt.Errorf("mail to %s: %w", s.Address, err)
	}
	return c, nil
}

// classify returns what an error of a mail means.
func classify(err error) error {
	var of *mail.SendError
	if !errors.As(err, &of) {
		return err
	}
	code := of.ErrorCode()
	switch {
	case of.Reason == mail.ErrSMTPDataClose && code == 0:
		return fmt.Errorf("%w: the server did not answer: %w", receiver.ErrUnanswered, err)
	case code/100 == 5 && (of.Reason == mail.ErrSMTPDataClose || of.Reason == mail.ErrSMTPRcptTo):
		return &receiver.RejectedError{Err: err}
	case code/100 == 4:
		return &receiver.TemporaryError{Err: err}
	}
	return err
}

// dialer connects for one mail.
type dialer struct {
	receiver *Receiver

	mu   sync.Mutex
	conn net.Conn
}

func (d *dialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	to := &net.Dialer{Timeout: d.receiver.settings.Timeout}
	var conn net.Conn
	var err error
	if d.receiver.settings.TLS == TLS {
		conn, err = (&tls.Dialer{NetDialer: to, Config: d.receiver.tls}).DialContext(ctx, network, d.receiver.settings.Address)
	} else {
		conn, err = to.DialContext(ctx, network, d.receiver.settings.Address)
	}
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(conn.RemoteAddr().String()); d.receiver.settings.TLS == Plain &&
		(err != nil || !net.ParseIP(host).IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("%s is not this machine: mails travel unencrypted to loopback addresses alone",
			conn.RemoteAddr()), conn.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = conn
	return conn, ctx.Err()
}

// close closes the connection, if there is one.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close() // the mail is there or not, whatever this says
	}
}

// auth authenticates by the first of PLAIN and LOGIN that the server has. The connection is encrypted or to this machine.
type auth struct {
	host, username, password string

	chosen smtp.Auth
}

// Start implements smtp.Auth.
func (a *auth) Start(server *smtp.ServerInfo) (mechanism string, answer []byte, err error) {
	for _, offered := range server.Auth {
		switch offered {
		case "PLAIN":
			a.chosen = smtp.PlainAuth("", a.username, a.password, a.host, true)
			return a.chosen.Start(server)
		case "LOGIN":
			a.chosen = smtp.LoginAuth(a.username, a.password, a.host, true)
		}
	}
	if a.chosen == nil {
		return "", nil, fmt.Errorf("the server authenticates by %q, want PLAIN or LOGIN", server.Auth)
	}
	return a.chosen.Start(server)
}

// Next implements smtp.Auth.
func (a *auth) Next(from []byte, more bool) ([]byte, error) { return a.chosen.Next(from, more) }
