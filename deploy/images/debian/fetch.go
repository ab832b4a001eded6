package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A Source has packages.
type Source struct {
	// Mirror is the address of a mirror of Debian's archives, as http://deb.debian.org.
	Mirror string
	// Snapshot is the address of an archive that keeps all versions, as
	// http://snapshot.debian.org/archive, which is asked for those that the mirror lacks;
	// empty for none.
	Snapshot string
	// Cache is a folder for packages, by their digests.
	Cache string
}

// errNotThere says that a server lacks a file.
var errNotThere = errors.New("not found")

// Fetch returns the path of a package in the cache. The file has the size and the digest of
// the lock.
func (s Source) Fetch(ctx context.Context, l Lock, p Package) (string, error) {
	file := filepath.Join(s.Cache, p.SHA256+".deb")
	if sum, err := digestOf(file); err == nil && sum == p.SHA256 {
		return file, nil
	}
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return "", err
	}
	err := download(ctx, s.Mirror, p.Archive+"/"+p.Path, p, file)
	if errors.Is(err, errNotThere) && s.Snapshot != "" {
		err = download(ctx, s.Snapshot, p.Archive+"/"+l.Time+"/"+p.Path, p, file)
	}
	if err != nil {
		return "", fmt.Errorf("fetch %s %s: %w", p.Name, p.Version, err)
	}
	return file, nil
}

func digestOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// download writes a package to a file, or nothing.
func download(ctx context.Context, server, path string, p Package, file string) error {
	address := strings.TrimSuffix(server, "/") + (&url.URL{Path: "/" + path}).EscapedPath()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w", address, errNotThere)
	default:
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return save(io.LimitReader(response.Body, p.Size+1), p, file)
}

// save writes a body to a file if it has the size and the digest of the package.
func save(body io.Reader, p Package, file string) error {
	fresh, err := os.CreateTemp(filepath.Dir(file), "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(fresh, h), body)
	if err := errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	if n != p.Size {
		return fmt.Errorf("it has %d bytes or more, and not %d as the lock says", n, p.Size)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != p.SHA256 {
		return fmt.Errorf("it has the SHA-256 %s, and not %s as the lock says", sum, p.SHA256)
	}
	return os.Rename(fresh.Name(), file)
}
