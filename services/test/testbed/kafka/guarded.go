package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// Mutual is where a guarded broker knows clients by their certificates.
type Mutual struct {
	Addr     string // HOST:PORT
	CertFile string // PEM, of the first user
	KeyFile  string // PEM
}

// StartGuarded returns a broker with TLS only, SCRAM-SHA-512 or SCRAM-SHA-256, and access
// control: all users have one password, and the first may do everything. Another of its
// addresses authenticates clients by certificates. It is always the test's own, made of
// artefacts, and only if BAI_TEST_REAL is 1; else the test is skipped.
func StartGuarded(tb testing.TB, password string, users ...string) *Server {
	tb.Helper()
	return StartGuardedAt(tb, "127.0.0.1", password, users...)
}

// StartGuardedAt is StartGuarded with an address of this machine, by which pods of
// a test's cluster reach it too.
func StartGuardedAt(tb testing.TB, host, password string, users ...string) *Server {
	tb.Helper()
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs a Kafka that checks rights: set BAI_TEST_REAL=1 to have one started (Java 17 and Maven)")
	}
	ports := port.ForTest(tb, 4)
	var format []string
	for _, user := range users {
		for _, mechanism := range []string{"SCRAM-SHA-512", "SCRAM-SHA-256"} {
			format = append(format, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, user, password))
		}
	}
	ca := newAuthority(tb, host)
	cert, key := ca.sign(tb, "a broker")
	s := begin(tb, fmt.Sprintf("%s:%d", host, ports[0]), []string{
		fmt.Sprintf("listeners=GUARDED://%[1]s:%[2]d,MUTUAL://%[1]s:%[3]d,INTERNAL://127.0.0.1:%[4]d,CONTROLLER://127.0.0.1:%[5]d", host,
			ports[0], ports[3], ports[2], ports[1]),
		fmt.Sprintf("advertised.listeners=GUARDED://%[1]s:%[2]d,MUTUAL://%[1]s:%[3]d,INTERNAL://127.0.0.1:%[4]d", host,
			ports[0], ports[3], ports[2]),
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,GUARDED:SASL_SSL,MUTUAL:SSL",
		"inter.broker.listener.name=INTERNAL",
		fmt.Sprintf("controller.quorum.voters=1@127.0.0.1:%d", ports[1]),
		"sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256",
		"listener.name.guarded.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.guarded.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"ssl.keystore.type=PEM", "ssl.keystore.certificate.chain=" + property(cert), "ssl.keystore.key=" + property(key),
		"ssl.truststore.type=PEM", "ssl.truststore.certificates=" + property(ca.pem),
		"listener.name.mutual.ssl.client.auth=required",
		"listener.name.mutual.ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/,DEFAULT",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS;User:" + users[0], // the broker to itself is ANONYMOUS
	}, format)
	dir := tb.TempDir()
	cert, key = ca.sign(tb, users[0])
	s.CA, s.Mutual = filepath.Join(dir, "ca.pem"),
		Mutual{fmt.Sprintf("%s:%d", host, ports[3]), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for path, text := range map[string]string{s.CA: ca.pem, s.Mutual.CertFile: cert, s.Mutual.KeyFile: key} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// property returns text as the value of a Java property.
func property(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", `\n`) }

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
	host net.IP
}

func newAuthority(tb testing.TB, host string) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	a := &authority{host: net.ParseIP(host), key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// sign returns a certificate of the host and its key, both in PEM form.
func (a *authority) sign(tb testing.TB, name string) (cert, key string) {
	tb.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{a.host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &own.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}
