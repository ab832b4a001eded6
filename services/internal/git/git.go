// Package git reads repositories over HTTP, without the program git: the files of one
// reference or one commit, without history.
package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Repository is an opened repository with a resolved reference.
//
// Errors are store.ErrNotFound for a missing repository, reference or path;
// store.ErrRefused for refused access; store.ErrTooLarge for an object or a pack over the
// limits of this package; errors.ErrUnsupported for more references than are read, and for
// a tree that cannot be read; *store.UnavailableError for a server that asks to retry later;
// syscall.ENOSPC for a full disk of temporary files. Any other error may be temporary.
// Errors of refusals do not quote the server.
type Repository struct {
	session    transport.UploadPackSession
	advertised *packp.AdvRefs
	want       plumbing.Hash // the object that the reference names
	commit     plumbing.Hash
	pack       *pack        // what was fetched; nil until then
	removeDir  func() error // gives its folder back; nil until there is one
}

// Opener opens repositories.
type Opener struct{}

// Open resolves ref in the repository at url, http or https: a tag, a branch, a commit,
// or nothing or HEAD for the default branch. The token, if any, is sent to no other host.
func (Opener) Open(ctx context.Context, url, ref, token string, client *http.Client) (*Repository, error) {
	at, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, fmt.Errorf("%q is no repository: %w", url, store.ErrNotFound)
	}
	var auth transport.AuthMethod
	if token != "" {
		auth = &githttp.BasicAuth{Username: "x-access-token", Password: token}
	}
	session, err := githttp.NewClient(limitClient(client)).NewUploadPackSession(at, auth)
	if err != nil {
		return nil, explain(err)
	}
	r := &Repository{session: session}
	if r.advertised, err = session.AdvertisedReferencesContext(ctx); err != nil {
		return nil, errors.Join(explain(err), session.Close())
	}
	if err := r.resolve(ref); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return r, nil
}

// resolve finds the commit of ref.
func (r *Repository) resolve(ref string) error {
	if (ref == "" || ref == "HEAD") && r.advertised.Head != nil {
		r.want, r.commit = *r.advertised.Head, *r.advertised.Head
		return nil
	}
	for _, name := range [...]string{ref, "refs/tags/" + ref, "refs/heads/" + ref} {
		if hash, ok := r.advertised.References[name]; ok && ref != "" {
			r.want, r.commit = hash, hash
			if peeled, ok := r.advertised.Peeled[name]; ok {
				r.commit = peeled
			}
			return nil
		}
	}
	if plumbing.IsHash(ref) {
		r.want = plumbing.NewHash(ref)
		r.commit = r.want
		return nil
	}
	return r.resolveShort(ref)
}

// resolveShort finds the commit whose ID begins with ref, among those that the repository
// lists.
func (r *Repository) resolveShort(ref string) error {
	if len(ref) < minShortHash || strings.Trim(ref, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: there is no tag, branch or commit %q", store.ErrNotFound, ref)
	}
	want := make(map[plumbing.Hash]plumbing.Hash) // commit → the object to request for it
	for name, hash := range r.advertised.References {
		commit := hash
		if peeled, ok := r.advertised.Peeled[name]; ok {
			commit = peeled
		}
		if strings.HasPrefix(hash.String(), ref) || strings.HasPrefix(commit.String(), ref) {
			want[commit] = hash
		}
	}
	if head := r.advertised.Head; head != nil && strings.HasPrefix(head.String(), ref) {
		want[*head] = *head
	}
	switch len(want) {
	case 0:
		return fmt.Errorf("%w: there is no tag or branch %q, and none is at a commit that begins so: of another commit write all 40 digits",
			store.ErrNotFound, ref)
	case 1:
		for commit, hash := range want {
			r.want, r.commit = hash, commit
		}
		return nil
	}
	return fmt.Errorf("%w: %d commits begin with %q: write all 40 digits", store.ErrNotFound, len(want), ref)
}

// minShortHash is how many digits of a commit's name are taken for one.
const minShortHash = 4

// Commit returns the commit that the reference stands for.
func (r *Repository) Commit() string { return r.commit.String() }

// Fetch downloads the commit into a folder of its own, and calls onBytes with the size of
// each piece, and with 0 for each object that it then checks. An error of onBytes ends it.
func (r *Repository) Fetch(ctx context.Context, onBytes func(n int) error) error {
	dir, removeDir, err := temp()
	if err != nil {
		return err
	}
	r.removeDir = removeDir
	ask := packp.NewUploadPackRequestFromCapabilities(r.advertised.Capabilities)
	ask.Wants = []plumbing.Hash{r.want}
	if r.advertised.Capabilities.Supports(capability.Shallow) {
		ask.Depth = packp.DepthCommits(1)
		if err := ask.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	answer, err := r.session.UploadPack(ctx, ask)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = answer.Close() }() // it was only read
	space := &tempSpace{dir: dir}
	r.pack, err = writePack(dir, &counter{from: plain(ask.Capabilities, answer), onBytes: func(n int) error {
		if err := space.reserve(n); err != nil {
			return err
		}
		return onBytes(n)
	}})
	if err != nil {
		return explain(err)
	}
	return explain(r.pack.check(func() error { return errors.Join(ctx.Err(), onBytes(0)) }))
}

// plain removes the framing around a pack.
func plain(agreed *capability.List, r io.Reader) io.Reader {
	switch {
	case agreed.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case agreed.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

// counter reports the number of bytes read.
type counter struct {
	from    io.Reader
	onBytes func(n int) error
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if wrong := c.onBytes(n); wrong != nil {
		return n, wrong
	}
	return n, err
}

// Close removes the downloaded files.
func (r *Repository) Close() error {
	err := r.session.Close()
	if r.pack != nil {
		err = errors.Join(err, r.pack.file.Close())
	}
	if r.removeDir != nil {
		err = errors.Join(err, r.removeDir())
	}
	return err
}

// explain converts an error to one that callers can distinguish.
func explain(err error) error {
	if bad := (*plumbing.UnexpectedError)(nil); errors.As(err, &bad) {
		err = bad.Err // it does not unwrap
	}
	answer := (*githttp.Err)(nil)
	switch {
	case errors.As(err, &answer) && store.RetryableStatus(answer.StatusCode()):
		return &store.UnavailableError{
			Status: answer.StatusCode(), RetryAfter: answer.Response.Header.Get("Retry-After"),
			Err: errors.New("the repository's server is busy"),
		}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("there is no such repository: %w", store.ErrNotFound)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fmt.Errorf("the repository is empty: %w", store.ErrNotFound)
	case errors.Is(err, object.ErrMalformedTree):
		return unreadableError{err}
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return fmt.Errorf("%w: it is not in what the repository gave", store.ErrNotFound)
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return fmt.Errorf("%w: %w", store.ErrRefused, transport.ErrAuthenticationRequired)
	case errors.Is(err, transport.ErrAuthorizationFailed), errors.Is(err, transport.ErrInvalidAuthMethod):
		return fmt.Errorf("%w: %w", store.ErrRefused, transport.ErrAuthorizationFailed)
	}
	return err
}
