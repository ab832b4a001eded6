// Package jvm fetches the pinned artefacts that the test beds are made of, and
// runs servers made of them for as long as a test lasts.
//
// Fetched files are kept by content, in kit.Cache. A server listens on loopback, keeps its data in a
// folder of its own, and ends with the process that started it, however that
// ends; the folder of one that was killed is removed by whoever starts next.
package jvm

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	_ "embed" // the list of artefacts
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/lock"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

//go:embed artifacts.txt
var list string

// copyGoal is the Maven goal that copies artefacts into a folder.
const copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"

// artifact is one file of the registry.
type artifact struct{ sum, group, name, version, kind string }

func (a artifact) file() string { return a.name + "-" + a.version + "." + a.kind }

// artifacts returns the artefacts of a set.
func artifacts(set string) (all []artifact, err error) {
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != set {
			continue
		}
		place := strings.Split(fields[len(fields)-1], ":")
		if len(fields) != 3 || len(place) != 4 {
			return nil, fmt.Errorf("artifacts.txt: %q: want SET SHA256 GROUP:NAME:VERSION:TYPE", strings.TrimSpace(line))
		}
		all = append(all, artifact{fields[1], place[0], place[1], place[2], place[3]})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("artifacts.txt: no set %q", set)
	}
	return all, nil
}

// Fetch returns the folder that holds the artefacts of a set, archives unpacked.
// It fetches them where they are not there yet, whole or not at all.
func Fetch(ctx context.Context, set string) (dir string, err error) {
	all, err := artifacts(set)
	if err != nil {
		return "", err
	}
	cache, err := kit.Cache()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, a := range all {
		fmt.Fprintln(h, a.sum, a.file())
	}
	dir = filepath.Join(cache, set+"-"+hex.EncodeToString(h.Sum(nil))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	held, err := wait(ctx, filepath.Join(cache, set+".lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if _, err := os.Stat(dir); err == nil { // another process was faster
		return dir, nil
	}
	return dir, fetch(ctx, all, dir)
}

// wait takes a lock, however long another process needs for its download.
func wait(ctx context.Context, path string) (*lock.Lock, error) {
	for {
		l, err := lock.Acquire(path)
		if held := (*lock.HeldError)(nil); !errors.As(err, &held) || ctx.Err() != nil {
			return l, err
		}
	}
}

// fetch makes dir of artefacts.
func fetch(ctx context.Context, all []artifact, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return err
	}
	err = fill(ctx, all, tmp)
	if err == nil {
		err = os.Chmod(tmp, 0o755) //nolint:gosec // read by the user that servers run as
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	return errors.Join(err, os.RemoveAll(tmp))
}

func fill(ctx context.Context, all []artifact, dir string) error {
	if err := maven(ctx, all, dir); err != nil {
		return err
	}
	for _, a := range all {
		path := filepath.Join(dir, a.file())
		if err := verify(path, a.sum); err != nil {
			return err
		}
		if a.kind != "zip" {
			continue
		}
		if err := errors.Join(unzip(path, dir), os.Remove(path)); err != nil {
			return fmt.Errorf("unpack %s: %w", path, err)
		}
	}
	return nil
}

// maven has Maven copy artefacts into dir.
func maven(ctx context.Context, all []artifact, dir string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("fetch %d artefacts: Maven is needed: install it (apt-get install maven): %w", len(all), err)
	}
	var items strings.Builder
	for _, a := range all {
		fmt.Fprintf(&items, "<artifactItem><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version><type>%s</type></artifactItem>\n", a.group, a.name, a.version, a.kind)
	}
	pom := fmt.Sprintf(`<project><modelVersion>4.0.0</modelVersion><groupId>testbed</groupId><artifactId>testbed</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
<configuration><outputDirectory>%s</outputDirectory><artifactItems>%s</artifactItems></configuration></plugin></plugins></build></project>`,
		dir, items.String())
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, []byte(pom), 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", file, copyGoal).CombinedOutput() //nolint:gosec // found above
	if err != nil {
		return fmt.Errorf("fetch %d artefacts with %s: %w:\n%s", len(all), mvn, err, tail(out))
	}
	return os.Remove(file)
}

func verify(path, want string) (err error) {
	f, err := os.Open(path) //nolint:gosec // ours
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has SHA-256 %s, want %s: it is not what artifacts.txt names", path, got, want)
	}
	return nil
}

// unzip unpacks an archive that was verified.
func unzip(path, dir string) (err error) {
	r, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, f := range r.File {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("%q lies outside of the folder", f.Name)
		}
		if err := extract(f, filepath.Join(dir, f.Name)); err != nil { //nolint:gosec // local, see above
			return err
		}
	}
	return nil
}

func extract(f *zip.File, path string) (err error) {
	if f.FileInfo().IsDir() {
		return os.MkdirAll(path, 0o755) //nolint:gosec // read by the user that servers run as
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.Mode().Perm()|0o644) //nolint:gosec // as above
	if err == nil {
		_, err = io.Copy(out, in) //nolint:gosec // its sum was checked
		err = errors.Join(err, out.Close())
	}
	return errors.Join(err, in.Close())
}

// tail returns the end of a program's output.
func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

// startTimeout is how long a server may take to answer. A slow machine has taken four minutes.
const startTimeout = 10 * time.Minute
