package launch

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/benchmark-ai/bai/services/plan/roles"
)

// newKeys creates the ssh keys of the pods of one attempt.
func newKeys() (roles.Keys, error) {
	private, public, err := keyPair()
	if err != nil {
		return roles.Keys{}, err
	}
	host, hostPublic, err := keyPair()
	if err != nil {
		return roles.Keys{}, err
	}
	return roles.Keys{
		Private: private, Public: fmt.Appendf(nil, "%s launcher\n", public),
		HostKey: host, KnownHosts: fmt.Appendf(nil, "%s %s\n", roles.HostAlias, hostPublic),
	}, nil
}

// keyPair creates a key, and returns it in PEM with its public part in OpenSSH format.
func keyPair() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make an ssh key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("write an ssh key: %w", err)
	}
	sshKey, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("write an ssh key: %w", err)
	}
	private = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return private, bytes.TrimSpace(ssh.MarshalAuthorizedKey(sshKey)), nil
}
