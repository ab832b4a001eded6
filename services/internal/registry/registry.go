// Package registry reads the entrypoint of an image from its registry.
//
// A registry is an address that a user named: requests to it, to its redirects and to its
// token servers are guarded, and limited in time and bytes. The package never reads a
// layer.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/egress"
)

// Settings say which registries are asked. The zero value asks all that are public.
type Settings struct {
	Off bool `toml:"off"` // ask none: images' own entrypoints are followed from the log of their container
	// of the nodes, for images that are made for several: OS/ARCH; empty means linux/amd64. A descriptor's node_selector for
	// kubernetes.io/arch goes before it
	Platform string `toml:"platform"`
	// of registries, and of those that give tokens or blobs for them, that may be asked: example.com, *.example.com; none means every
	Hosts    []string      `toml:"hosts"`
	Networks []string      `toml:"networks"` // that are not public and may be asked all the same: 10.0.0.0/8, or the word loopback
	Timeout  time.Duration `toml:"timeout"`  // of all that is asked about one image; zero means 20 s
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	_, err := egress.New("registry", s.Hosts, s.Networks)
	_, platform := platformOf(s.Platform, "")
	if s.Timeout < 0 {
		err = errors.Join(err, errors.New("registry.timeout: must not be negative"))
	}
	return errors.Join(err, platform)
}

// Secrets reads pull secrets.
type Secrets interface {
	// PullSecret returns the data of a Secret, by key.
	PullSecret(ctx context.Context, scope, name string) (map[string][]byte, error)
}

// Reader asks registries. It may be used by several goroutines.
type Reader struct {
	settings Settings
	policy   egress.Policy
	inner    *http.Transport
	secrets  Secrets
}

// New returns a Reader, which reads pull secrets from secrets.
func New(s Settings, secrets Secrets) (*Reader, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p, err := egress.New("registry", s.Hosts, s.Networks)
	if err != nil {
		return nil, err
	}
	s.Timeout = cmp.Or(s.Timeout, 20*time.Second)
	return &Reader{settings: s, policy: p, inner: newTransport(p), secrets: secrets}, nil
}

// Close ends the connections that are kept for reuse.
func (r *Reader) Close() { r.inner.CloseIdleConnections() }

// Image returns the answer of an image's registry. One that gave none is an Image
// that says why: the only error is that ctx is done.
func (r *Reader) Image(ctx context.Context, q cluster.ImageQuery) (cluster.Image, error) {
	image := cluster.Image{Name: q.Name}
	if r.settings.Off {
		image.UnreadReason = "the platform's settings let no registry be asked (registry.off)"
		return image, nil
	}
	ref, err := name.ParseReference(q.Name)
	if err != nil {
		image.UnreadReason = fmt.Sprintf("%q is not the name of an image in a registry", q.Name)
		return image, nil
	}
	platform, err := platformOf(r.settings.Platform, q.Arch)
	if err != nil {
		image.UnreadReason = err.Error()
		return image, nil
	}
	within, cancel := context.WithTimeoutCause(ctx, r.settings.Timeout, errTimeout)
	defer cancel()
	logins, lacking := r.logins(within, q, ref)
	image, err = r.read(within, ref, platform, logins)
	if err != nil {
		if ctx.Err() != nil {
			return cluster.Image{}, ctx.Err()
		}
		image = cluster.Image{UnreadReason: explain(within, ref.Context().RegistryStr(), err, r.settings.Timeout)}
		if lacking != "" {
			image.UnreadReason, image.NoSecret = image.UnreadReason+"; "+lacking, true
		}
	}
	image.Name = q.Name
	return image, nil
}

// errTimeout is the cause of a context whose time for one image is over.
var errTimeout = errors.New("the time for one image is over")

// logins returns those with which an image is asked for, as a kubelet would, the
// last without any; and which secrets could not be read.
func (r *Reader) logins(ctx context.Context, q cluster.ImageQuery, ref name.Reference) (all []authn.Authenticator, unreadable string) {
	var unread []string
	for _, secret := range q.Secrets {
		data, err := r.secrets.PullSecret(ctx, q.Scope, secret)
		if err == nil {
			var more []authn.AuthConfig
			more, err = loginsOf(data, ref.Context().RegistryStr(), ref.Context().RepositoryStr())
			for _, login := range more {
				all = append(all, authn.FromConfig(login))
			}
		}
		if err != nil {
			unread = append(unread, fmt.Sprintf("the pull secret %q cannot be read: %v", secret, err))
		}
	}
	return append(all, authn.Anonymous), strings.Join(unread, "; ")
}

// read asks with one login after the other until one is let in.
func (r *Reader) read(ctx context.Context, ref name.Reference, p v1.Platform, logins []authn.Authenticator) (cluster.Image, error) {
	bound := &limitedTransport{
		inner: r.inner, policy: r.policy, allowHTTP: ref.Context().Scheme() == "http", left: maxBytes,
		requestsLeft: maxRequests,
	}
	var first error
	for _, login := range logins {
		image, err := readWith(ctx, ref, p, login, bound)
		if err == nil {
			return image, nil
		}
		if first == nil {
			first = err
		}
		if !isLoginRefused(err) {
			return cluster.Image{}, err
		}
	}
	return cluster.Image{}, first
}

// readWith asks with one login.
func readWith(ctx context.Context, ref name.Reference, p v1.Platform, login authn.Authenticator,
	t http.RoundTripper,
) (cluster.Image, error) {
	once := remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Steps: 3})
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithTransport(t), remote.WithAuth(login), remote.WithPlatform(p), once)
	if err != nil {
		return cluster.Image{}, err
	}
	image, err := found.Image()
	if err != nil {
		return cluster.Image{}, err
	}
	text, err := image.RawConfigFile()
	if err != nil {
		return cluster.Image{}, err
	}
	read, err := parseConfig(text)
	read.Digest, read.Platform = found.Digest.String(), p.String()
	return read, err
}
