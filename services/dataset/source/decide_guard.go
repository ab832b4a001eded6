package source

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/egress"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// MaxRedirects is the maximum number of redirects of a source.
const MaxRedirects = 5

// guard decides which sources may be read.
type guard struct {
	schemes     []string // lower case
	folders     []string // absolute and clean
	buckets     []string // s3://name
	egress      egress.Policy
	objectStore *url.URL // URL of the platform's object store; nil for none
}

func newGuard(s Settings) (guard, error) {
	var (
		g    guard
		errs []error
	)
	errs = append(errs, g.allowSchemes(s.Schemes), g.allowBuckets(s.Buckets))
	if s.ObjectStoreURL != "" {
		own, err := url.Parse(s.ObjectStoreURL)
		if err != nil {
			err = errors.New("the URL of the object store is none")
		}
		g.objectStore, errs = own, append(errs, err)
	}
	for _, f := range s.Folders {
		if !path.IsAbs(f) {
			errs = append(errs, fmt.Errorf("sources.folders: %q is not absolute", f))
		}
		g.folders = append(g.folders, path.Clean(f))
	}
	var err error
	g.egress, err = egress.New("sources", s.Hosts, s.Networks)
	return g, errors.Join(append(errs, err)...)
}

func (g *guard) allowSchemes(names []string) error {
	var errs []error
	for _, name := range names {
		if !slices.Contains(schemes(), name) {
			errs = append(errs, fmt.Errorf("sources.schemes: %q is not one of %s", name, strings.Join(schemes(), ", ")))
		}
	}
	if g.schemes = names; len(names) == 0 {
		g.schemes = schemes()
	}
	return errors.Join(errs...)
}

func (g *guard) allowBuckets(names []string) error {
	var errs []error
	for _, name := range names {
		if p, ok := parseBucketURL(name); !ok || p.bucket == "" || p.key != "" {
			errs = append(errs, fmt.Errorf("sources.buckets: %q is not a bucket, as s3://name", name))
		}
		g.buckets = append(g.buckets, strings.TrimSuffix(name, "/"))
	}
	return errors.Join(errs...)
}

// schemes returns the URL schemes that can be read.
func schemes() []string {
	return append([]string{"http", "https", "file", gitScheme}, bucketSchemes()...)
}

// gitScheme is the scheme of repositories.
const gitScheme = "git+https"

// revision is the content of a commit below a path.
type revision struct {
	url, host string // URL and host of the repository; the host in the form of hostOf
	ref       string // tag, branch or commit; empty for the default branch
	path      string // empty for everything
}

// parseRepositoryURL returns the revision that git+https://host/repository@ref#path
// names, and reports whether the URL has that form.
func parseRepositoryURL(source string) (revision, bool) {
	u, err := url.Parse(source)
	if err != nil || u.Scheme != gitScheme {
		return revision{}, false
	}
	r := revision{host: hostOf(&url.URL{Scheme: "https", Host: u.Host}), path: strings.Trim(u.Fragment, "/")}
	u.Scheme, u.Fragment, u.RawFragment, u.User = "https", "", "", nil
	if at := strings.LastIndexByte(u.Path, '@'); at >= 0 {
		u.Path, u.RawPath, r.ref = u.Path[:at], "", u.Path[at+1:]
	}
	r.url = u.String()
	return r, true
}

func bucketSchemes() []string { return []string{"s3", "gs", "azblob"} }

// bucketLocation is the location of objects in a bucket.
type bucketLocation struct{ scheme, bucket, key string }

// parseBucketURL returns the location that a URL names, and reports whether the URL is
// one of a bucket. The key is not unescaped.
func parseBucketURL(source string) (bucketLocation, bool) {
	scheme, rest, ok := strings.Cut(source, "://")
	if scheme = strings.ToLower(scheme); !ok || !slices.Contains(bucketSchemes(), scheme) {
		return bucketLocation{}, false
	}
	name, key, _ := strings.Cut(rest, "/")
	return bucketLocation{scheme, name, key}, true
}

// IsFolder reports whether a URL can only be that of a folder.
func IsFolder(source string) bool {
	p, ok := parseBucketURL(source)
	of, isGit := parseRepositoryURL(source)
	return ok && (p.key == "" || strings.HasSuffix(p.key, "/")) || isGit && of.path == ""
}

// refuseBucket returns the reason why p may not be read, or nil.
func (g guard) refuseBucket(p bucketLocation, name string, open bool) *Error {
	switch {
	case !open || !slices.Contains(g.schemes, p.scheme):
		return refused("source %s: scheme %q is not one of %s", name, p.scheme, strings.Join(g.schemes, ", "))
	case p.bucket == "":
		return refused("source %s names no bucket", name)
	case strings.Trim(p.bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-_$") != "" || strings.Contains(p.bucket, ".."):
		return refused("source %s: that is not the name of a bucket", name)
	case g.inObjectStore(p.scheme, p.bucket, "/"+p.key):
		return refusedObjectStore(name)
	case len(g.buckets) > 0 && !slices.Contains(g.buckets, p.scheme+"://"+p.bucket):
		return refused("source %s: bucket %s://%s is not one that the platform's settings allow (sources.buckets)", name, p.scheme,
			p.bucket)
	}
	return nil
}

// parse parses a source's URL.
func parse(source string) (*url.URL, *Error) {
	u, err := url.Parse(source)
	if err != nil {
		return nil, refused("source %q is not a URL", Redact(source))
	}
	return u, nil
}

// refuse returns the reason why u may not be read, as far as the URL itself decides
// that, or nil.
func (g guard) refuse(u *url.URL) *Error {
	name := Redact(u.String())
	switch {
	case u.Scheme == "":
		return refused("source %q has no scheme: %s is wanted", name, strings.Join(g.schemes, " or "))
	case !slices.Contains(g.schemes, u.Scheme):
		return refused("source %s: scheme %q is not one of %s", name, u.Scheme, strings.Join(g.schemes, ", "))
	}
	where := g.refuseHost
	if u.Scheme == "file" {
		where = g.refuseFile
	}
	if why := where(u, name); why != nil {
		return why
	}
	if u.User != nil {
		return refused("source %s names a user or a password, which would be seen by all who see its URL: leave them out", name)
	}
	return nil
}

// hostOf returns the host of a URL in canonical form.
func hostOf(u *url.URL) string {
	name, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return name
	}
	return name + ":" + port
}

func (g guard) refuseHost(u *url.URL, name string) *Error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "" {
		return refused("source %s names no host", name)
	}
	if !g.egress.AllowsHost(host) {
		return refused("source %s: host %q is not one that the platform's settings allow (sources.hosts)", name, host)
	}
	if a, err := netip.ParseAddr(host); err == nil && !g.egress.AllowsAddr(a) {
		return refusedAddr(name, a)
	}
	return nil
}

func (g guard) refuseFile(u *url.URL, name string) *Error {
	switch {
	case u.Host != "" && u.Host != "localhost":
		return refused("source %s: a file of another host (%q) cannot be read; file:///folder/file is wanted", name, u.Host)
	case !path.IsAbs(u.Path):
		return refused("source %s does not name an absolute path: file:///folder/file does", name)
	case len(g.folders) == 0:
		return refused("source %s: the platform's settings allow no files (sources.folders)", name)
	case g.allowedFolder(path.Clean(u.Path)) == "":
		return refusedFile(name)
	case g.inObjectStore("file", "", u.Path):
		return refusedObjectStore(name)
	}
	return nil
}

// inObjectStore reports whether a location is in the platform's object store, or
// contains it.
func (g guard) inObjectStore(scheme, host, name string) bool {
	if g.objectStore == nil || g.objectStore.Scheme != scheme || g.objectStore.Host != host {
		return false
	}
	folder := func(p string) string { return strings.TrimSuffix(path.Clean("/"+p), "/") + "/" }
	ours, theirs := folder(g.objectStore.Path), folder(name)
	return strings.HasPrefix(theirs, ours) || strings.HasPrefix(ours, theirs)
}

func refusedObjectStore(name string) *Error {
	return refused("source %s lies in the object store of the platform, of which runs read only what is theirs", name)
}

// allowedFolder returns the allowed folder that has the file, or "".
func (g guard) allowedFolder(file string) string {
	for _, f := range g.folders {
		if within(f, file) {
			return f
		}
	}
	return ""
}

// within reports whether file is below folder. Both are clean.
func within(folder, file string) bool {
	return strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/") && file != folder
}

// redirect returns the reason why a redirect to next is refused, or nil; visited are
// the URLs so far; the first is the one that the user gave.
func (g guard) redirect(next *url.URL, visited []*url.URL) *Error {
	name := Redact(visited[0].String())
	if len(visited) > MaxRedirects {
		return &Error{
			Reason: event.FetchFailed, Class: event.ClassUser,
			Message: fmt.Sprintf("source %s redirects more than %d times", name, MaxRedirects),
		}
	}
	for _, v := range visited {
		if v.String() == next.String() {
			return &Error{
				Reason: event.FetchFailed, Class: event.ClassUser,
				Message: fmt.Sprintf("source %s redirects in a circle, to %s again", name, Redact(next.String())),
			}
		}
	}
	if next.Scheme != "http" && next.Scheme != "https" {
		return refused("source %s redirects to %s: scheme %q is neither http nor https", name, Redact(next.String()), next.Scheme)
	}
	if last := visited[len(visited)-1]; last.Scheme == "https" && next.Scheme == "http" {
		return refused("source %s redirects from https to %s, which anybody on the way can change", name, Redact(next.String()))
	}
	if why := g.refuse(next); why != nil {
		return refused("source %s redirects to a place that is not allowed: %s", name, why.Message)
	}
	return nil
}

func refused(format string, args ...any) *Error {
	return &Error{Reason: event.SourceRefused, Class: event.ClassUser, Message: fmt.Sprintf(format, args...)}
}

func refusedAddr(name string, a netip.Addr) *Error {
	return refused("source %s: address %s is not public, and the platform's settings do not allow it (sources.networks)", name, a)
}

func refusedFile(name string) *Error {
	return refused("source %s lies in no folder that the platform's settings allow (sources.folders)", name)
}

// Redact returns a URL without its secrets: user and password, and the values of query
// parameters whose names sound secret. Text that is not a URL loses its query.
func Redact(source string) string {
	u, err := url.Parse(source)
	if err != nil {
		before, _, _ := strings.Cut(source, "?")
		if at := strings.LastIndexByte(before, '@'); at >= 0 {
			before = "…" + before[at:]
		}
		return before
	}
	if u.User != nil {
		u.User = nil
	}
	if at := strings.LastIndexByte(u.Opaque, '@'); at >= 0 { // a URL without its scheme
		u.Opaque = "…" + u.Opaque[at:]
	}
	if u.Scheme != gitScheme { // the fragment of a git URL is a path
		u.Fragment, u.RawFragment = "", ""
	}
	params := strings.Split(u.RawQuery, "&")
	for i, p := range params {
		if name, _, ok := strings.Cut(p, "="); ok && secret(name) {
			params[i] = name + "=REDACTED"
		}
	}
	u.RawQuery = strings.Join(params, "&")
	return u.String()
}

// secret reports whether a query parameter with that name may be a credential.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"auth", "code", "cred", "jwt", "key", "pass", "policy", "pwd", "secret", "session", "sig", "token"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
