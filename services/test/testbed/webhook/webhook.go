// Package webhook has the API server of a test call the webhooks of an operator that runs beside it, and not in a pod.
package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Settings say what the webhooks of a test are called for, and where.
type Settings struct {
	Name      string // of the configurations
	Scope     string // namespace of the test
	Address   string // URL of the operator's server of webhooks
	Authority []byte // certificate of that server, in PEM

	Wanted func(path string) bool // reports whether a webhook is called, by the path of its URL
	Scoped func(path string) bool // reports whether it is called for objects of the namespace only
}

// Configurations returns the configurations of webhooks of a file of an operator, as a list in JSON.
func Configurations(manifests string, s Settings) ([]byte, error) {
	text, err := os.ReadFile(manifests) //nolint:gosec // of a module
	if err != nil {
		return nil, err
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var into any = &validating
		if bytes.Contains(document, []byte("kind: Mutating")) {
			into = &mutating
		}
		if err := yaml.Unmarshal(document, into); err != nil {
			return nil, fmt.Errorf("read %s: %w", manifests, err)
		}
	}
	mutating.Name, validating.Name = s.Name, s.Name
	mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(w admissionv1.MutatingWebhook) bool {
		return !s.Wanted(*w.ClientConfig.Service.Path)
	})
	validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionv1.ValidatingWebhook) bool {
		return !s.Wanted(*w.ClientConfig.Service.Path)
	})
	for i := range mutating.Webhooks {
		w := &mutating.Webhooks[i]
		w.ClientConfig, w.NamespaceSelector = s.client(w.ClientConfig)
	}
	for i := range validating.Webhooks {
		w := &validating.Webhooks[i]
		w.ClientConfig, w.NamespaceSelector = s.client(w.ClientConfig)
	}
	if len(mutating.Webhooks) == 0 || len(validating.Webhooks) == 0 {
		return nil, fmt.Errorf("%s has none of the webhooks that are wanted", manifests)
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{mutating, validating}})
}

// client returns how the API server calls a webhook, and for which namespaces.
func (s Settings) client(c admissionv1.WebhookClientConfig) (admissionv1.WebhookClientConfig, *metav1.LabelSelector) {
	url := s.Address + *c.Service.Path
	to := admissionv1.WebhookClientConfig{URL: &url, CABundle: s.Authority}
	if !s.Scoped(*c.Service.Path) {
		return to, nil
	}
	return to, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Scope}}
}

// WriteCertificate writes the certificate of a server at an address, which has signed it
// itself, and its key to a folder, and returns the certificate.
func WriteCertificate(dir, address string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, IPAddresses: []net.IP{net.ParseIP(address)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return text, errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}
