package kafka

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

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Mechanisms by which brokers know who speaks to them. OAUTHBEARER is not among
// them, as the client library lacks it.
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

// TLS says that connections are encrypted, and whom they trust. The client's own
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

// isEnabled says whether connections are encrypted.
func (t TLS) isEnabled() bool {
	return t.Enabled || t.CAFile != "" || t.CertFile != "" || t.KeyFile != "" || t.ServerName != "" || t.CA != ""
}

// SASL says who speaks to the brokers.
type SASL struct {
	Mechanism    string `toml:"mechanism"`     // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty means that nobody asks
	User         string `toml:"user"`          // name
	PasswordFile string `toml:"password_file"` // file with the password, read again for each new connection

	Password string `toml:"-"` // itself, instead of PasswordFile
}

// validate names every setting at fault, below the table called name, for
// connections to brokers.
func (a Access) validate(name string, brokers []string) error {
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
	case s.Mechanism == Plain && !a.TLS.isEnabled() && slices.ContainsFunc(brokers, isRemote):
		errs = append(errs, fmt.Errorf("%s.sasl.mechanism: PLAIN shows the password to who listens in: set %[1]s.tls.enabled, or use SCRAM-SHA-512", name))
	}
	return errors.Join(errs...)
}

// isRemote says whether a broker's address leads out of this machine.
func isRemote(broker string) bool {
	host, _, err := net.SplitHostPort(broker)
	if err != nil {
		host = broker
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// config returns the configuration of TLS, nil for plain TCP.
func (t TLS) config() (*tls.Config, error) {
	if !t.isEnabled() {
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
			return nil, fmt.Errorf("read whom the brokers' certificates are signed by: there is no certificate in PEM form in %s", cmp.Or(t.CAFile, "what the pod was given"))
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

// mechanism returns how to say who speaks, nil where nobody asks.
func (s SASL) mechanism() (sasl.Mechanism, error) { //nolint:ireturn // as the library wants it
	if s.Mechanism == "" {
		return nil, nil //nolint:nilnil // how kafka-go says "none"
	}
	if _, err := s.secret(); err != nil {
		return nil, err
	}
	return &identity{sasl: s}, nil
}

// secret returns the password as it is now.
func (s SASL) secret() (string, error) {
	if s.PasswordFile == "" {
		return s.Password, nil
	}
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password for the brokers: %w", err)
	}
	return string(bytes.TrimRight(text, "\r\n")), nil
}

// identity is a sasl.Mechanism whose password is read for each connection. What
// follows from a password, which takes thousands of hashes, is worked out once.
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
	password, err := i.sasl.secret()
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

// CheckKey says why services, which take messages of pods, could not tell whose
// they are.
func (s Settings) CheckKey() error {
	if s.KeyFile == "" && len(s.Key) == 0 {
		return errors.New("kafka.key_file: is needed: without the platform's key nobody can tell which run a pod may speak for. Make one with 'openssl rand -hex 32', and give all services the same")
	}
	return nil
}

// CheckPods says why pods could not write what they measure: where services are
// asked who they are, so are pods, and they must be somebody else.
func (s Settings) CheckPods() error {
	if s.SASL.Mechanism != "" && s.Pods.SASL.Mechanism == "" {
		return errors.New("kafka.pods.sasl: pods need a user of their own, who may write bai.status, bai.metrics and bai.logs only: 'bai admin topics plan' shows its rights")
	}
	return nil
}

// ForPods returns how pods write to the brokers, with the contents of the files
// that Pods names, for the Secret of a pod.
func (s Settings) ForPods() (pod.Access, error) {
	tls, sasl := s.Pods.TLS, s.Pods.SASL
	out := pod.Access{TLS: tls.isEnabled(), CA: tls.CA, ServerName: tls.ServerName, Mechanism: sasl.Mechanism, User: sasl.User, Compression: s.Compression}
	if tls.CAFile != "" {
		pem, err := os.ReadFile(tls.CAFile)
		if err != nil {
			return pod.Access{}, fmt.Errorf("read whom the brokers' certificates are signed by, for pods: %w", err)
		}
		out.CA = string(pem)
	}
	if sasl.Mechanism != "" {
		var err error
		if out.Password, err = sasl.secret(); err != nil {
			return pod.Access{}, fmt.Errorf("for pods: %w", err)
		}
	}
	return out, nil
}

// InPod returns the settings with which a pod speaks as source of the run to which
// token gives it the right.
func InPod(brokers []string, a pod.Access, token, source string) Settings {
	return Settings{
		Brokers: brokers, Token: token, Source: source, Compression: a.Compression,
		Access: Access{
			TLS:  TLS{Enabled: a.TLS, CA: a.CA, ServerName: a.ServerName},
			SASL: SASL{Mechanism: a.Mechanism, User: a.User, Password: a.Password},
		},
	}
}
