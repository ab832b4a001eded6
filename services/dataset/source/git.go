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

// Repository is a git repository at a resolved reference. Its errors are those of
// Bucket, store.ErrTooLarge if it has more than can be read, and errors.ErrUnsupported if
// it has content that cannot be read. After any other error, another try may succeed.
type Repository interface {
	// Commit returns the commit of the reference.
	Commit() string
	// Fetch fetches the commit, and reports the number of bytes of each step to came,
	// which is 0 for a step of checking them. An error of came ends it.
	Fetch(ctx context.Context, came func(n int) error) error
	// Walk visits the files and links below path, sorted by name in byte order. If path
	// is a file, it visits only that file, with an empty name. An error of file or link
	// ends it, and is returned as it is or wrapped.
	Walk(path string, file func(name string, size int64, executable bool, content io.Reader) error, link func(name, to string) error) error
	// Close removes the fetched files.
	Close() error
}

// OpenRepository resolves a reference of the repository at a URL through client, which
// connects only to addresses that the settings allow.
type OpenRepository func(ctx context.Context, url, ref, token string, client *http.Client) (Repository, error)

// ReadRepositories enables repositories, which open opens. It must be called before the
// first read. Without it, URLs of repositories are refused.
func (r *Reader) ReadRepositories(open OpenRepository) { r.clone = open }

// gitDownload is the download of a commit's content below a path.
type gitDownload struct {
	*download

	revision revision
	token    string
}

// git downloads the content of a commit into put.
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
		if errors.Is(err, store.ErrNotFound) && !isSinkError(err) {
			return failed(event.ClassUser, "source %s cannot be read: %v", d.name, err)
		}
		return err
	})
	return a, err
}

// token returns the settings' token for a host, or "".
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
		err = sinkError{err} // the repository is on the local disk first
	}
	if err != nil {
		return Result{}, err
	}
	g.body.watch.Stop() // nothing more is requested
	var filled error
	err = put(ctx, -1, func(w io.Writer) error {
		a.Tree, filled = g.pack(repo, sinkWriter{w})
		return filled
	})
	if filled != nil && !isSinkError(filled) {
		return Result{}, filled
	}
	return a, asSinkError(err)
}

// sinkError is an error of the sink.
type sinkError struct{ error }

// Unwrap returns the error of the sink.
func (e sinkError) Unwrap() error { return e.error }

// asSinkError marks an error of the sink, for which another request would not help.
func asSinkError(err error) error {
	if err == nil {
		return nil
	}
	return sinkError{err}
}

// isSinkError reports whether an error is marked as one of the sink.
func isSinkError(err error) bool {
	_, ok := errors.AsType[sinkError](err)
	return ok
}

// sinkWriter marks the errors of writing to the sink. So they differ from those of reading
// the repository meanwhile.
type sinkWriter struct{ to io.Writer }

// Write implements io.Writer.
func (w sinkWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	return n, asSinkError(err)
}

// pack writes the archive of a folder, or the bytes of a single file.
func (g *gitDownload) pack(repo Repository, w io.Writer) (*Tree, error) {
	p := &gitArchive{gitDownload: g, to: w, archive: newArchive(w), bytesLeft: g.reader.settings.MaxSize}
	if err := repo.Walk(g.revision.path, p.addFile, p.addLink); err != nil || p.singleFile {
		return nil, err
	}
	tree, err := p.archive.close()
	return &tree, err
}

// gitArchive is an archive of a repository that is being written.
type gitArchive struct {
	*gitDownload

	to         io.Writer
	archive    *archive
	singleFile bool  // the content is a single file and not an archive
	bytesLeft  int64 // number of bytes that may still be added
	files      int   // number of files and links
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

// checkMember returns the reason why the archive cannot take another member with that
// name, or nil.
func (p *gitArchive) checkMember(name, kind string) error {
	if p.files++; p.files > p.reader.settings.MaxFiles {
		return tooMany(p.name, p.reader.settings.MaxFiles)
	}
	if why := whyBadName(name); why != "" {
		return refused("source %s: %.200q cannot be a %s: %s", p.name, name, kind, why)
	}
	return nil
}
