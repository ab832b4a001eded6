package email_test

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/email"
	"github.com/benchmark-ai/bai/services/analyst/receiver/receivertest"
)

// mailServer takes mails of one user.
type mailServer struct {
	server *smtp.Server
	stop   func()

	mu       sync.Mutex
	password string
	answer   receivertest.Answer
	received []string
}

// silent is the log of the server.
type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// session is a connection to the server.
type session struct {
	server *mailServer
	conn   *smtp.Conn
	user   bool
	from   string
	to     []string
}

func (s *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: c}, nil
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		if username != "bai" || password != s.server.password {
			return smtp.ErrAuthFailed
		}
		s.user = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.user {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "unknown@") {
		return &smtp.SMTPError{Code: 550, Message: "no such user"}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	switch s.server.answer {
	case receivertest.Busy:
		return &smtp.SMTPError{Code: 450, Message: "slow down"}
	case receivertest.Broken:
		return &smtp.SMTPError{Code: 451, Message: "a fault"}
	case receivertest.Rejects:
		return &smtp.SMTPError{Code: 554, Message: "not this one"}
	case receivertest.Cut, receivertest.Takes:
	}
	s.server.received = append(s.server.received, "MAIL FROM "+s.from+"\nRCPT TO "+strings.Join(s.to, ", ")+"\n\n"+strings.ReplaceAll(string(text), "\r\n", "\n"))
	if s.server.answer == receivertest.Cut {
		return s.conn.Conn().Close()
	}
	return nil
}

func (s *session) Reset()        { s.to = nil }
func (s *session) Logout() error { return nil }

// start starts a server, encrypted from the beginning or by STARTTLS, and returns settings for it.
func start(t *testing.T, mode string, trusted receivertest.Trust) (*mailServer, email.Settings) {
	t.Helper()
	certificate, file := receivertest.Certificate(t)
	if !trusted {
		_, file = receivertest.Certificate(t)
	}
	s := &mailServer{password: "one"}
	s.server = smtp.NewServer(s)
	s.server.Domain, s.server.MaxMessageBytes, s.server.ErrorLog = "127.0.0.1", 1<<20, silent{}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	switch mode {
	case email.TLS:
		listener = tls.NewListener(listener, config)
	case email.STARTTLS:
		s.server.TLSConfig = config
	case email.Plain:
		s.server.AllowInsecureAuth = true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.server.Serve(listener) // until the listener is closed
	}()
	s.stop = func() { _ = errors.Join(listener.Close(), s.server.Close()) } // the server may not know the listener yet
	t.Cleanup(func() {
		s.stop()
		<-done
	})
	return s, email.Settings{
		Address: address, TLS: mode, From: "Benchmark AI <bai@example.com>", To: []string{"perf@example.com", "Ann <ann@example.com>"},
		Username: "bai", PasswordFile: receivertest.Secret(t, "one"), CAFile: file,
	}
}

func open(t *testing.T, s email.Settings) *email.Receiver {
	t.Helper()
	to, err := email.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestTheContractOfAReceiver(t *testing.T) {
	for _, mode := range []string{email.STARTTLS, email.TLS} {
		t.Run(mode, func(t *testing.T) {
			receivertest.Run(t, func(t *testing.T, trusted receivertest.Trust) receivertest.Server {
				t.Helper()
				s, settings := start(t, mode, trusted)
				return receivertest.Server{
					Receiver: open(t, settings), Received: s.mails, Set: s.set, Stop: s.stop,
					Inert: []string{"\nBcc:", "\nQUIT", "\u202e", "\x1b", "\x00"},
					Rotate: func(t *testing.T, file bool) {
						t.Helper()
						if s.setPassword("two"); file {
							receivertest.WriteSecret(t, settings.PasswordFile, "two")
						}
					},
				}
			})
		})
	}
}

func (s *mailServer) mails() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, text := range s.received {
		for n, b := range boundary.FindAllStringSubmatch(text, -1) {
			text = strings.ReplaceAll(text, b[1], fmt.Sprintf("boundary-%d", n+1))
		}
		all = append(all, image.ReplaceAllString(text, "\n(the picture)\n"))
	}
	return all
}

var (
	boundary = regexp.MustCompile(`boundary=([0-9A-Za-z'()+_,./:=?-]+)`)
	image    = regexp.MustCompile(`\n(?:[A-Za-z0-9+/]{76}\n)+[A-Za-z0-9+/=]*\n`)
)

// parts returns the parts of a mail that are no multiparts, by their types.
func parts(t *testing.T, header string, body io.Reader) map[string]string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(header)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{kind: string(text)}
	}
	all := map[string]string{}
	for r := multipart.NewReader(body, params["boundary"]); ; {
		p, err := r.NextPart() // decodes quoted-printable
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, parts(t, p.Header.Get("Content-Type"), p))
	}
}

func TestAMailHasTextHTMLAndAPictureAndTextsOfUsersAreNoHTML(t *testing.T) {
	s, settings := start(t, email.STARTTLS, true)
	if _, err := open(t, settings).Send(t.Context(), receivertest.Hostile()); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(s.received[0], "\n\n")
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := parts(t, m.Header.Get("Content-Type"), m.Body)
	if len(all) != 3 || !strings.Contains(all["text/plain"], "rate fell") && !strings.Contains(all["text/plain"], "cause regression") {
		t.Errorf("parts %v", slices.Sorted(maps.Keys(all)))
	}
	for _, bad := range []string{"<script", "<img src=x", "<a href=\"http://evil", "<!channel"} {
		if strings.Contains(all["text/html"], bad) {
			t.Errorf("the HTML has %s", bad)
		}
	}
	picture, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(all["image/png"])))
	if err != nil || picture.Bounds().Dx() != 480 {
		t.Errorf("the picture: %v", err)
	}
	if len(m.Header["Bcc"])+len(m.Header["Cc"]) > 0 || len(m.Header["Subject"]) != 1 {
		t.Errorf("headers %v", m.Header)
	}
}

func (s *mailServer) set(a receivertest.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

func (s *mailServer) setPassword(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.password = text
}

func TestMailsTravelUnencryptedToThisMachineAlone(t *testing.T) {
	s, settings := start(t, email.Plain, true)
	if _, err := open(t, settings).Send(t.Context(), receivertest.Notice("n1")); err != nil || len(s.mails()) != 1 {
		t.Errorf("Send to 127.0.0.1: %v, %d arrived, want 1", err, len(s.mails()))
	}
	settings.TLS = email.STARTTLS // which the server does not have
	if _, err := open(t, settings).Send(t.Context(), receivertest.Notice("n2")); err == nil || len(s.mails()) != 1 {
		t.Errorf("Send by STARTTLS to a server without it: %v, %d arrived: want an error", err, len(s.mails()))
	}
}

func TestAnAddressThatTheServerDoesNotHaveIsARefusal(t *testing.T) {
	_, settings := start(t, email.STARTTLS, true)
	settings.To = []string{"unknown@example.com"}
	var no *receiver.RejectedError
	if _, err := open(t, settings).Send(t.Context(), receivertest.Notice("n1")); !errors.As(err, &no) || !strings.Contains(err.Error(), "no such user") {
		t.Errorf("Send: %v, want a refusal with the words of the server", err)
	}
}

func TestNoErrorHasThePassword(t *testing.T) {
	s, settings := start(t, email.STARTTLS, true)
	s.setPassword("other")
	receivertest.WriteSecret(t, settings.PasswordFile, "hunter2hunter2")
	_, err := open(t, settings).Send(t.Context(), receivertest.Notice("n1"))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Send: %v", err)
	}
}
