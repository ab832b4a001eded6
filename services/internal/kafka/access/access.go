// Package access is how a process is let in by the brokers and by the services that
// read from them: encryption, users, rights, and the tokens of runs.
package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Mechanisms of SASL. OAUTHBEARER is missing because the client library lacks it.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Access is how connections to the brokers are protected. The zero value is
// plain TCP, for brokers on the same machine.
type Access struct {
	TLS  TLS  `toml:"tls"`
	SASL SASL `toml:"sasl"`
}

// TLS has connections encrypted. The client's own
// certificate is read again for each new connection, so that it can be renewed in
// place; ca_file once.
type TLS struct {
	Enabled    bool   `toml:"enabled"`     // any of the following says so too
	CAFile     string `toml:"ca_file"`     // PEM, of who signs the brokers' certificates; empty means those that the system trusts
	CertFile   string `toml:"cert_file"`   // PEM, of this client; with key_file
	KeyFile    string `toml:"key_file"`    // PEM
	ServerName string `toml:"server_name"` // that certificates must have; empty means the name of the host

	CA string `toml:"-"` // PEM itself, instead of CAFile
}

// IsEnabled reports whether connections are encrypted.
func (t TLS) IsEnabled() bool {
	return t.Enabled || t.CAFile != "" || t.CertFile != "" || t.KeyFile != "" || t.ServerName != "" || t.CA != ""
}

// SASL is the user of the brokers.
type SASL struct {
	Mechanism    string `toml:"mechanism"`     // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty means that nobody asks
	User         string `toml:"user"`          // name
	PasswordFile string `toml:"password_file"` // file with the password, read again for each new connection

	Password string `toml:"-"` // itself, instead of PasswordFile
}

// Validate names every setting at fault, below the table called name, for
// connections to brokers.
func (a Access) Validate(name string, brokers []string) error {
	var errs []error
	if (a.TLS.CertFile == "") != (a.TLS.KeyFile == "") {
		errs = append(errs, fmt.Errorf("%s.tls: cert_file and key_file go together", name))
	}
	mechanisms := []string{Plain, ScramSHA256, ScramSHA512}
	switch s := a.SASL; {
	case s.Mechanism == "" && s == SASL{}:
	case !slices.Contains(mechanisms, s.Mechanism):
		errs = append(errs, fmt.Errorf("%s.sasl.mechanism: %q: use %s", name, s.Mechanism, strings.Join(mechanisms, ", ")))
	case s.User == "" || s.PasswordFile == "" && s.Password == "":
		errs = append(errs, fmt.Errorf("%s.sasl: user and password_file are needed", name))
	case s.Mechanism == Plain && !a.TLS.IsEnabled() && slices.ContainsFunc(brokers, isRemote):
		errs = append(errs, fmt.Errorf("%s.sasl.mechanism: PLAIN shows the password to who listens in: set %[1]s.tls.enabled, or use SCRAM-SHA-512", name))
	}
	return errors.Join(errs...)
}

// isRemote reports whether a broker's address is outside this machine.
func isRemote(broker string) bool {
	host, _, err := net.SplitHostPort(broker)
	if err != nil {
		host = broker
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Config returns the configuration of TLS, nil for plain TCP.
func (t TLS) Config() (*tls.Config, error) {
	if !t.IsEnabled() {
		return nil, nil //nolint:nilnil // how crypto/tls and kafka-go say "none"
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	pem := []byte(t.CA)
	if t.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(t.CAFile); err != nil {
			return nil, fmt.Errorf("read whom the brokers' certificates are signed by: %w", err)
		}
	}
	if len(pem) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read whom the brokers' certificates are signed by: there is no certificate in PEM form in %s",
				cmp.Or(t.CAFile, "what the pod was given"))
		}
	}
	if t.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			return &cert, err
		}
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("read this client's certificate: %w", err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return c, nil
}

// Client returns the client's side of SASL, nil if the brokers require none.
func (s SASL) Client() (sasl.Mechanism, error) { //nolint:ireturn // as the library wants it
	if s.Mechanism == "" {
		return nil, nil //nolint:nilnil // how kafka-go says "none"
	}
	if _, err := s.Secret(); err != nil {
		return nil, err
	}
	return &identity{sasl: s}, nil
}

// Secret returns the current password.
func (s SASL) Secret() (string, error) {
	if s.PasswordFile == "" {
		return s.Password, nil
	}
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password for the brokers: %w", err)
	}
	return string(bytes.TrimRight(text, "\r\n")), nil
}

// identity is a sasl.Mechanism that reads its password for each connection. It computes the thousands of hashes of one password once.
type identity struct {
	sasl SASL

	mu       sync.Mutex
	password string
	scram    sasl.Mechanism // of password
}

// Name implements sasl.Mechanism.
func (i *identity) Name() string { return i.sasl.Mechanism }

// Start implements sasl.Mechanism.
func (i *identity) Start(ctx context.Context) (sasl.StateMachine, []byte, error) { //nolint:ireturn // as the library wants it
	password, err := i.sasl.Secret()
	if err != nil {
		return nil, nil, err
	}
	if i.sasl.Mechanism == Plain {
		return plain.Mechanism{Username: i.sasl.User, Password: password}.Start(ctx)
	}
	m, err := i.mechanismFor(password)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare user %q and its password for the brokers: %w", i.sasl.User, err)
	}
	return m.Start(ctx)
}

// mechanismFor returns the mechanism for a password.
func (i *identity) mechanismFor(password string) (sasl.Mechanism, error) { //nolint:ireturn // as the library has it
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.scram != nil && i.password == password {
		return i.scram, nil
	}
	algorithm := scram.SHA512
	if i.sasl.Mechanism == ScramSHA256 {
		algorithm = scram.SHA256
	}
	m, err := scram.Mechanism(algorithm, i.sasl.User, password)
	if err == nil {
		i.password, i.scram = password, m
	}
	return m, err
}
