//go:build linux

package kubecluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// api speaks to the API server as an administrator.
type api struct {
	server string
	client *http.Client
}

func newAPI(pki, server string) (*api, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("speak to the API server: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("speak to the API server: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{cert}}
	return &api{server: server, client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}}, nil
}

// get returns the content of a path.
func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return body, err
}

// await polls until ok, and after a timeout returns the last error.
func await(ctx context.Context, every time.Duration, what string, ok func() error) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		}
	}
}

// errNotYet says that something is still awaited.
var errNotYet = errors.New("not yet")
