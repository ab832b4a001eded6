package source

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Repository is one of git that was asked what a reference stands for. Its
// errors are those of Bucket, and errors.ErrUnsupported, where it has more than
// is read of one.
type Repository interface {
	// Commit returns what the reference stands for.
	Commit() string
	// Fetch brings it, and tells how many bytes come; came may end that.
	Fetch(ctx context.Context, came func(n int) error) error
	// Walk visits the files and links below path, in the byte order of their
	// names; where path is a file, that one alone, under the empty name.
	Walk(path string, file func(name string, size int64, executable bool, content io.Reader) error, link func(name, to string) error) error
	// Close removes what was fetched.
	Close() error
}

// OpenRepository asks the repository at a URL what a reference stands for, by
// way of client: it goes nowhere that settings do not allow.
type OpenRepository func(ctx context.Context, url, ref, token string, client *http.Client) (Repository, error)

// ReadRepositories has repositories read, too, which open opens. It is called
// before anything is read, or not at all: then their URLs are refused.
func (r *Reader) ReadRepositories(open OpenRepository) { r.clone = open }

// gitDownload is what a commit of a repository has below a path, on its way.
type gitDownload struct {
	*download

	revision revision
	token    string
}

// git brings what a commit has into put.
func (r *Reader) git(ctx context.Context, of revision, req Request, put Sink) (Result, error) {
	d := r.download(of.host, req)
	defer r.hosts.release(of.host)
	token, err := r.token(of.host)
	if err != nil {
		return Result{}, failed(event.ClassPlatform, "source %s: the platform's token for %s cannot be read", d.name, of.host)
	}
	g := &gitDownload{download: d, revision: of, token: token}
	var a Result
	err = g.retry(ctx, func(ctx context.Context) (err error) {
		a, err = g.get(ctx, put)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return Result{}, failed(event.ClassUser, "source %s cannot be read: %v", d.name, err)
	}
	return a, err
}

// token returns the token for a host, if settings have one.
func (r *Reader) token(host string) (string, error) {
	file := r.settings.Tokens[host]
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

func (g *gitDownload) get(ctx context.Context, put Sink) (Result, error) {
	repo, err := g.reader.clone(ctx, g.revision.url, g.revision.ref, g.token, g.reader.client)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = repo.Close() }() // it was only read
	a := Result{Validators: Validators{ETag: "commit " + repo.Commit()}, Revision: repo.Commit()}
	if a.Validators == g.req.Previous {
		a.Unchanged = true
		return a, nil
	}
	done, limit := int64(0), g.reader.settings.MaxSize
	err = repo.Fetch(ctx, func(n int) error {
		g.body.resetStall()
		if done += int64(n); done > limit {
			return tooLarge(g.name, limit)
		}
		g.req.OnProgress(done, -1)
		return g.host.throttle(ctx, n)
	})
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = sinkError{err} // it lies on our disk first
	}
	if err != nil {
		return Result{}, err
	}
	g.body.watch.Stop() // nothing more is asked for
	err = put(ctx, -1, func(w io.Writer) (err error) {
		a.Tree, err = g.pack(repo, w)
		return asSinkError(err)
	})
	return a, asSinkError(err)
}

// sinkError is one of who takes the content.
type sinkError struct{ error }

// Unwrap returns it.
func (e sinkError) Unwrap() error { return e.error }

// asSinkError marks an error that came up while content was written: it is no use to
// ask for that again.
func asSinkError(err error) error {
	_, own := errors.AsType[*Error](err)
	_, marked := errors.AsType[sinkError](err)
	if err == nil || own || marked || errors.Is(err, store.ErrNotFound) {
		return err
	}
	return sinkError{err}
}

// pack writes the archive of a folder, or a file as it is.
func (g *gitDownload) pack(repo Repository, w io.Writer) (*Tree, error) {
	p := &gitArchive{gitDownload: g, to: w, archive: newArchive(w), bytesLeft: g.reader.settings.MaxSize}
	if err := repo.Walk(g.revision.path, p.addFile, p.addLink); err != nil || p.singleFile {
		return nil, err
	}
	tree, err := p.archive.close()
	return &tree, err
}

// gitArchive is an archive that is being written.
type gitArchive struct {
	*gitDownload

	to         io.Writer
	archive    *archive
	singleFile bool  // it is a file, and no archive
	bytesLeft  int64 // bytes that it may still have
	files      int   // that it has, and links
}

func (p *gitArchive) addFile(name string, size int64, executable bool, content io.Reader) error {
	if p.bytesLeft -= size; p.bytesLeft < 0 {
		return tooLarge(p.name, p.reader.settings.MaxSize)
	}
	if p.singleFile = name == ""; p.singleFile {
		_, err := io.Copy(p.to, content)
		return err
	}
	if err := p.checkMember(name, "file"); err != nil {
		return err
	}
	if err := p.archive.begin(name, size, executable); err != nil {
		return err
	}
	if _, err := io.Copy(p.archive, content); err != nil {
		return err
	}
	p.archive.end()
	return nil
}

func (p *gitArchive) addLink(name, to string) error {
	if err := p.checkMember(name, "link"); err != nil {
		return err
	}
	return p.archive.link(name, to)
}

// checkMember says why an archive does not take one more of that name.
func (p *gitArchive) checkMember(name, kind string) error {
	if p.files++; p.files > p.reader.settings.MaxFiles {
		return tooMany(p.name, p.reader.settings.MaxFiles)
	}
	if why := whyBadName(name); why != "" {
		return refused("source %s: %.200q cannot be a %s: %s", p.name, name, kind, why)
	}
	return nil
}
