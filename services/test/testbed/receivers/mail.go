package receivers

import (
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/mail"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
)

const (
	mailUser     = "bai"
	mailPassword = "the password of a mail server"
)

// Mail takes mails of one user after STARTTLS. It knows a repeated one by its Message-ID.
type Mail struct {
	log

	address, authority string
}

func startMail(t *testing.T) *Mail {
	t.Helper()
	m := &Mail{}
	certificate, authority := receivertest.Certificate(t)
	server := smtp.NewServer(m)
	server.Domain, server.MaxMessageBytes, server.ErrorLog = "127.0.0.1", 1<<20, silent{}
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address, m.authority = listener.Addr().String(), authority
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until the listener is closed
	}()
	t.Cleanup(func() {
		_ = errors.Join(listener.Close(), server.Close()) // the server may not know the listener yet
		<-done
	})
	return m
}

func (m *Mail) settings(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{
		"kind": "email", "address": m.address, "from": "Benchmark AI <bai@example.com>", "to": []string{"perf@example.com"},
		"username": mailUser, "password_file": secret(t, mailPassword), "ca_file": m.authority,
	}
}

// silent is the log of the server.
type silent struct{}

// Printf implements smtp.Logger.
func (silent) Printf(string, ...any) {}

// Println implements smtp.Logger.
func (silent) Println(...any) {}

// session is a connection.
type session struct {
	server *Mail
	conn   *smtp.Conn
	user   bool
}

// NewSession implements smtp.Backend.
func (m *Mail) NewSession(c *smtp.Conn) (smtp.Session, error) { //nolint:ireturn // the library asks for one
	if m.doing() == Away {
		return nil, c.Conn().Close()
	}
	return &session{server: m, conn: c}, nil
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *session) Auth(string) (sasl.Server, error) { //nolint:ireturn // the library asks for one
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != mailUser || password != mailPassword {
			s.server.refuse("user %q", username)
			return smtp.ErrAuthFailed
		}
		s.user = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *session) Mail(string, *smtp.MailOptions) error {
	if _, encrypted := s.conn.TLSConnectionState(); !encrypted || !s.user {
		s.server.refuse("a mail without TLS or a user")
		return smtp.ErrAuthRequired
	}
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	fault := s.server.doing()
	switch fault {
	case Busy:
		return &smtp.SMTPError{Code: 450, Message: "slow down"}
	case Broken:
		return &smtp.SMTPError{Code: 451, Message: "a fault"}
	case None, Cut, Away:
	}
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(m.Body)
	if err != nil { // it was killed in between
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(m.Header.Get("Message-Id"), "<"), "@")
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || len(id) != 26 {
		s.server.refuse("mail %q: %v", id, err)
	}
	s.server.add(Arrival{Notice: id, Became: became(subject), Again: again(string(body)), Text: subject + "\n" + string(body)})
	if fault == Cut {
		return s.conn.Conn().Close()
	}
	return nil
}

// Reset implements smtp.Session.
func (s *session) Reset() {}

// Logout implements smtp.Session.
func (s *session) Logout() error { return nil }
