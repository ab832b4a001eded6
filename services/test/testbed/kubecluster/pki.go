//go:build linux

package kubecluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one cluster.
type authority struct {
	dir    string
	server string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// holder is the subject of a certificate.
type holder struct {
	file        string
	name, group string
	hosts       []string
}

// newAuthority makes an authority whose files lie in dir.
func newAuthority(dir, server string) (*authority, error) {
	a := &authority{dir: dir, server: server, serial: 1}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	template := a.template(pkix.Name{CommonName: "bed"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	a.key = key
	return a, a.write("ca", der, key)
}

func (a *authority) template(name pkix.Name) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: name,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
}

// issue makes a certificate that is good for both ends of a connection, and a
// kubeconfig with it.
func (a *authority) issue(h holder) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", h.file, err)
	}
	subject := pkix.Name{CommonName: h.name}
	if h.group != "" {
		subject.Organization = []string{h.group}
	}
	template := a.template(subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range h.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", h.file, err)
	}
	if err := a.write(h.file, der, key); err != nil {
		return err
	}
	return a.kubeconfig(h.file)
}

func (a *authority) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: text},
	} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("certificate %s: %w", name, err)
		}
	}
	return nil
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: bed, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: %s, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: bed, context: {cluster: bed, user: %[3]s}}]
current-context: bed
`

func (a *authority) kubeconfig(name string) error {
	var data []any
	for _, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		b, err := os.ReadFile(filepath.Join(a.dir, file))
		if err != nil {
			return fmt.Errorf("kubeconfig %s: %w", name, err)
		}
		data = append(data, base64.StdEncoding.EncodeToString(b))
	}
	text := fmt.Sprintf(kubeconfig, a.server, data[0], name, data[1], data[2])
	if err := os.WriteFile(filepath.Join(a.dir, name+".kubeconfig"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", name, err)
	}
	return nil
}

// certificates makes those of all parts of a cluster.
func certificates(dir, server string, nodes int) error {
	a, err := newAuthority(dir, server)
	if err != nil {
		return err
	}
	holders := []holder{
		{
			file: "apiserver", name: "kube-apiserver",
			hosts: []string{"127.0.0.1", controlPlane, firstService, "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		},
		{file: "kubelet-client", name: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "admin", name: "admin", group: "system:masters"},
		{file: "controllers", name: "system:kube-controller-manager"},
		{file: "serviceaccounts", name: "serviceaccounts"},
		{file: "scheduler", name: "system:kube-scheduler"},
		{file: "proxy", name: "system:kube-proxy"},
		{file: "dns", name: "dns", group: "system:masters"},
		{file: "simulator", name: "simulator", group: "system:masters"},
	}
	for n := 1; n <= nodes; n++ {
		holders = append(holders, holder{
			file: nodeName(n), name: "system:node:" + nodeName(n), group: "system:nodes", hosts: []string{nodeName(n), nodeAddress(n)},
		})
	}
	for _, h := range holders {
		if err := a.issue(h); err != nil {
			return err
		}
	}
	return nil
}
