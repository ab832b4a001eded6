package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Users of a guarded broker. Operator may do everything, the others what they
// are given.
const (
	Operator = "operator"
	Services = "bai"
	Pods     = "bai-pods"
)

// Password is that of all users of a guarded broker.
const Password = "not-for-everybody"

// SecuredBroker is a broker that speaks TLS only, asks by SCRAM-SHA-512 who speaks, and
// checks what they may do.
type SecuredBroker struct {
	Addrs []string
	CA    string // path of the certificate that signed the broker's
}

// StartSecured starts a guarded broker without topics, which stops with the test.
func StartSecured(tb testing.TB) *SecuredBroker {
	tb.Helper()
	cert, ca := certificate(tb)
	const mechanism = "SCRAM-SHA-512"
	c, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser(mechanism, Operator, Password), kfake.User(mechanism, Services, Password), kfake.User(mechanism, Pods, Password),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}),
	)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	path := filepath.Join(tb.TempDir(), "ca.pem")
	if err := os.WriteFile(path, ca, 0o600); err != nil {
		tb.Fatal(err)
	}
	return &SecuredBroker{Addrs: c.ListenAddrs(), CA: path}
}

// certificate returns one of loopback that signs itself, and its PEM form.
func certificate(tb testing.TB) (tls.Certificate, []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
