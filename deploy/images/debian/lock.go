// Package debian makes root file systems of Debian packages whose versions and digests are
// locked, without a container engine and without running anything of a package.
package debian

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Package is one file of a Debian archive.
type Package struct {
	Name    string
	Version string
	Archive string // debian, or debian-security
	Path    string // in the archive, as pool/main/i/iperf/iperf_2.1.8_amd64.deb
	Size    int64
	SHA256  string // hexadecimal
}

// A Lock is what a root file system is made of, in the order in which it is unpacked.
type Lock struct {
	Time     string // when the packages were chosen, as 20261126T120000Z: snapshot archives keep them by it
	Packages []Package
}

// Bounds of a lock.
const (
	maxPackages = 5000
	maxDebSize  = 2 << 30
	maxLockLine = 4096
)

// lockTime is the format of Lock.Time, as snapshot.debian.org has it.
const lockTime = "20060102T150405Z"

// Patterns of the columns of a lock.
var (
	namePattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{0,127}$`)
	versionPattern = regexp.MustCompile(`^[0-9][A-Za-z0-9.+:~-]{0,127}$`)
	pathPattern    = regexp.MustCompile(`^pool/[A-Za-z0-9+~_./:-]{1,400}\.deb$`)
)

// Write writes a lock: a line for the time, and for each package one with its columns.
func (l Lock) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Written by `make locks`: name, version, archive, path, size and SHA-256 of each package.\ntime %s\n", l.Time)
	for _, p := range l.Packages {
		fmt.Fprintln(b, p.Name, p.Version, p.Archive, p.Path, p.Size, p.SHA256)
	}
	return b.Flush()
}

// ReadLock reads what Write wrote. An error names the line.
func ReadLock(r io.Reader) (Lock, error) {
	var l Lock
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLockLine)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		columns := strings.Fields(text)
		switch {
		case len(columns) == 0 || columns[0][0] == '#':
		case columns[0] == "time" && len(columns) == 2:
			l.Time = columns[1]
		default:
			p, err := readPackage(columns)
			if err != nil {
				return Lock{}, fmt.Errorf("line %d: %w", n, err)
			}
			l.Packages = append(l.Packages, p)
		}
		if len(l.Packages) > maxPackages {
			return Lock{}, fmt.Errorf("line %d: more than %d packages", n, maxPackages)
		}
	}
	if err := lines.Err(); err != nil {
		return Lock{}, err
	}
	if _, err := time.Parse(lockTime, l.Time); err != nil || len(l.Packages) == 0 {
		return Lock{}, fmt.Errorf("no lock: it needs a line \"time %s\", and packages (make locks)", lockTime)
	}
	return l, nil
}

func readPackage(columns []string) (Package, error) {
	if len(columns) != 6 {
		return Package{}, fmt.Errorf("%d columns, and not name, version, archive, path, size and SHA-256", len(columns))
	}
	size, err := strconv.ParseInt(columns[4], 10, 64)
	if err != nil {
		return Package{}, fmt.Errorf("size %q is no number", columns[4])
	}
	p := Package{columns[0], columns[1], columns[2], columns[3], size, columns[5]}
	return p, p.check()
}

// check refuses values that could name another file, or that no package has.
func (p Package) check() error {
	digest, err := hex.DecodeString(p.SHA256)
	switch {
	case !namePattern.MatchString(p.Name):
		return fmt.Errorf("%q is no name of a package", p.Name)
	case !versionPattern.MatchString(p.Version):
		return fmt.Errorf("%s: %q is no version", p.Name, p.Version)
	case p.Archive != "debian" && p.Archive != "debian-security":
		return fmt.Errorf("%s: archive %q is neither debian nor debian-security", p.Name, p.Archive)
	case !pathPattern.MatchString(p.Path) || strings.Contains(p.Path, ".."):
		return fmt.Errorf("%s: %q is no path of a package", p.Name, p.Path)
	case p.Size <= 0 || p.Size > maxDebSize:
		return fmt.Errorf("%s: size %d is not from 1 to %d", p.Name, p.Size, maxDebSize)
	case err != nil || len(digest) != 32:
		return fmt.Errorf("%s: %q is no SHA-256", p.Name, p.SHA256)
	}
	return nil
}

// Resolve asks apt for all packages that some packages need, on a machine that has none. apt
// checks the signatures of its lists; `apt-get update` renews these.
func Resolve(ctx context.Context, names []string, now time.Time) (Lock, error) {
	args := []string{
		"-o", "Dir::State::status=/dev/null", "-o", "Acquire::ForceHash=SHA256", "-o", "APT::Architecture=amd64",
		"-o", "APT::Architectures=amd64",
		"-qq", "--no-install-recommends", "--print-uris", "install",
	}
	cmd := exec.CommandContext(ctx, "apt-get", append(args, names...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return Lock{}, fmt.Errorf("ask apt-get for %s (apt-get update?): %w: %s", strings.Join(names, ", "), err,
			strings.TrimSpace(errs.String()))
	}
	l := Lock{Time: now.UTC().Format(lockTime)}
	for line := range strings.Lines(string(out)) {
		p, err := fromAPT(line)
		if err != nil {
			return Lock{}, fmt.Errorf("line %q of apt-get: %w", strings.TrimSpace(line), err)
		}
		l.Packages = append(l.Packages, p)
	}
	return l, nil
}

// fromAPT reads a line of apt-get --print-uris: 'URL' FILE SIZE SHA256:DIGEST, where FILE is
// NAME_VERSION_ARCH.deb with the colon of the version as %3a.
func fromAPT(line string) (Package, error) {
	columns := strings.Fields(line)
	if len(columns) != 4 {
		return Package{}, fmt.Errorf("%d columns", len(columns))
	}
	address, err := url.Parse(strings.Trim(columns[0], "'"))
	if err != nil {
		return Package{}, err
	}
	archive, path, ok := strings.Cut(strings.TrimPrefix(address.Path, "/"), "/pool/")
	file, err := url.PathUnescape(columns[1])
	parts := strings.Split(file, "_")
	size, sizeErr := strconv.ParseInt(columns[2], 10, 64)
	if !ok || err != nil || sizeErr != nil || len(parts) != 3 {
		return Package{}, fmt.Errorf("is no package")
	}
	if i := strings.LastIndex(archive, "/"); i >= 0 {
		archive = archive[i+1:]
	}
	p := Package{parts[0], parts[1], archive, "pool/" + path, size, strings.TrimPrefix(columns[3], "SHA256:")}
	return p, p.check()
}
