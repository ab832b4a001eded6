// Package client sends requests to Elasticsearch: documents, bulk writes and searches, each with retries while the server cannot answer.
package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"golang.org/x/sync/semaphore"
)

// Settings say where Elasticsearch is and how it is used. Everything but the
// addresses may be left out.
type Settings struct {
	Addresses    []string `toml:"addresses"`     // URLs of nodes
	Username     string   `toml:"username"`      // for basic authentication
	PasswordFile string   `toml:"password_file"` // file with that user's password
	APIKeyFile   string   `toml:"api_key_file"`  // file with an API key, base64, instead of a user
	// PEM file of the authorities that nodes' certificates are checked with; empty means the system's
	CAFile string `toml:"ca_file"`
	Prefix string `toml:"prefix"` // of the names of all indices and templates; empty means bai
	Shards int    `toml:"shards"` // of each index of samples and lines made from now on; zero means 1
	// how many copies, as auto_expand_replicas has it; empty means 0-1: a second one where there is a second node
	Replicas  string        `toml:"replicas"`
	Refresh   time.Duration `toml:"refresh"`    // how long what was written may be unseen by searches; zero means 1 s
	Timeout   time.Duration `toml:"timeout"`    // of one request; zero means 30 s
	BulkBytes int           `toml:"bulk_bytes"` // of one bulk request, about; zero means 2 MiB
	// bulk requests at once; zero means 4. Times BulkBytes it should stay below 10 % of the nodes' heap
	Writers     int  `toml:"writers"`
	ManualSetup bool `toml:"manual_setup"` // templates are made by an administrator's command only, and missing ones are an error
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if len(s.Addresses) == 0 {
		errs = append(errs, errors.New("elasticsearch.addresses: at least one is needed"))
	}
	for _, a := range s.Addresses {
		if u, err := url.Parse(a); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("elasticsearch.addresses: %q: want a URL such as https://elastic.example.com:9200", a))
		} else if u.User != nil {
			errs = append(errs, errors.New("elasticsearch.addresses: a URL must not hold a password: use username and password_file"))
		}
	}
	if s.Prefix != "" && !regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`).MatchString(s.Prefix) {
		errs = append(errs, fmt.Errorf("elasticsearch.prefix: %q: want a lower-case letter, then letters, digits and -", s.Prefix))
	}
	if s.Shards < 0 || s.Refresh < 0 || s.Timeout < 0 || s.BulkBytes < 0 || s.Writers < 0 {
		errs = append(errs, errors.New("elasticsearch: shards, refresh, timeout, bulk_bytes and writers must not be negative"))
	}
	return errors.Join(errs...)
}

// Client may be used by several goroutines.
type Client struct {
	Settings Settings // with their defaults
	// Prepare is called before each search. The store sets it before the first.
	Prepare func(context.Context) error

	base     *elasticsearch.BaseClient
	http     *http.Transport
	inFlight *semaphore.Weighted // bytes of bulk requests under way
}

// Open returns a client of an Elasticsearch, and does not wait for the server.
func Open(s Settings) (*Client, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s.Prefix, s.Replicas = cmp.Or(s.Prefix, "bai"), cmp.Or(s.Replicas, "0-1")
	s.Shards, s.Writers, s.BulkBytes = cmp.Or(s.Shards, 1), cmp.Or(s.Writers, 4), cmp.Or(s.BulkBytes, 2<<20)
	s.Refresh, s.Timeout = cmp.Or(s.Refresh, time.Second), cmp.Or(s.Timeout, 30*time.Second)
	password, err := secret(s.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("read the password for Elasticsearch: %w", err)
	}
	key, err := secret(s.APIKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the API key for Elasticsearch: %w", err)
	}
	t, err := transport(s)
	if err != nil {
		return nil, err
	}
	client, err := elasticsearch.NewBaseClient(elasticsearch.Config{
		Addresses: s.Addresses, Username: s.Username, Password: password, APIKey: key, Transport: t,
		DisableRetry: true, // a write whose answer was lost must not be taken for that of another writer
	})
	if err != nil {
		return nil, fmt.Errorf("open Elasticsearch %s: %w", strings.Join(s.Addresses, ", "), err)
	}
	return &Client{
		Settings: s, Prepare: func(context.Context) error { return nil },
		base: client, http: t, inFlight: semaphore.NewWeighted(int64(s.Writers) * int64(s.BulkBytes)),
	}, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// transport keeps enough idle connections for all concurrent requests.
func transport(s Settings) (*http.Transport, error) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("http.DefaultTransport was replaced")
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 4 * s.Writers
	t.ResponseHeaderTimeout = s.Timeout
	if s.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of Elasticsearch: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authorities of Elasticsearch: %s holds no certificate in PEM", s.CAFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

func secret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path) //nolint:gosec // the operator says where
	return strings.TrimSpace(string(b)), err
}
