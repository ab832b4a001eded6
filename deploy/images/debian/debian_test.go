package debian_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/deploy/images/debian"
)

// member returns a member of an ar archive.
func member(name string, body []byte) []byte {
	text := fmt.Appendf(nil, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "100644", len(body))
	text = append(text, body...)
	if len(body)%2 == 1 {
		text = append(text, '\n')
	}
	return text
}

// deb returns a package with some files.
func deb(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	w := tar.NewWriter(z)
	for _, h := range entries {
		body := strings.Repeat("x", int(min(h.Size, 100)))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, body)
	}
	_ = w.Close() // fails where a test gives a file fewer bytes than it claims
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]byte("!<arch>\n"), member("debian-binary", []byte("2.0\n")), member("control.tar.gz", []byte("scripts are not read")), member("data.tar.gz", data.Bytes()))
}

func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 3} }
func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

// mirror serves packages by their paths, and returns the lock that has them.
func mirror(t *testing.T, packages map[string][]byte) (debian.Source, debian.Lock) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSuffix(filepath.Base(r.URL.Path), "_1+deb12_amd64.deb")
		body, ok := packages[name]
		if !ok || !strings.HasPrefix(r.URL.Path, "/debian/pool/") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	l := debian.Lock{Time: "20260101T000000Z"}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		sum := sha256.Sum256(packages[name])
		l.Packages = append(l.Packages, debian.Package{
			Name: name, Version: "1+deb12", Archive: "debian", Path: "pool/main/" + name + "_1+deb12_amd64.deb", Size: int64(len(packages[name])), SHA256: hex.EncodeToString(sum[:]),
		})
	}
	return debian.Source{Mirror: s.URL, Cache: t.TempDir()}, l
}

// define writes a definition with its lock, and reads it.
func define(t *testing.T, text string, l debian.Lock) debian.Image {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "image"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	im, err := debian.ReadImage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := im.WriteLock(l); err != nil {
		t.Fatal(err)
	}
	return im
}

// entries returns what a root file system has, a line an entry.
func entries(t *testing.T, text []byte) []string {
	t.Helper()
	var all []string
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: %d:%d, %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		line := fmt.Sprintf("%s %o", h.Name, h.Mode)
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		all = append(all, line)
	}
}

func TestAnImageHasTheFilesOfItsPackagesAndOfItsDefinition(t *testing.T) {
	t.Parallel()
	program := file("./bin/a")
	program.Mode = 0o4755
	s, l := mirror(t, map[string][]byte{
		"a": deb(t, folder("./"), folder("./bin"), program, tar.Header{Typeflag: tar.TypeLink, Name: "./usr/bin/b", Linkname: "./bin/a"}, link("./usr/bin/c", "../../etc/alternatives/c")),
		"b": deb(t, folder("./usr/share/b/"), file("./usr/share/b/read me")),
	})
	im := define(t, "# An image.\npackage a b\nenv NAME value\nfolder /run/d 0700\nlink /usr/bin/d a\nfile image /etc/definition 0644\nuser d 101 /run/d\n", l)
	var first, second bytes.Buffer
	if err := errors.Join(im.Write(t.Context(), s, &first), im.Write(t.Context(), s, &second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same lock gives other bytes")
	}
	got := entries(t, first.Bytes())
	for _, want := range []string{
		"bin 777 -> usr/bin", "usr/bin/a 755", "usr/bin/b 644 -> usr/bin/a", "usr/bin/c 777 -> ../../etc/alternatives/c", "usr/share/b/read me 644",
		"run/d/ 700", "usr/bin/d 777 -> a", "etc/definition 644", "etc/passwd 644", "tmp/ 1777",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if !bytes.Contains(first.Bytes(), []byte("\nd:x:101:101::/run/d:")) || !slices.Equal(im.Env, []string{"NAME=value"}) {
		t.Errorf("no user d, or the variables %v", im.Env)
	}
}

func TestAHostilePackageIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entries []tar.Header
		want    string
	}{
		"a path that climbs":                {[]tar.Header{file("./usr/../../etc/shadow")}, "leads out of the package"},
		"an absolute path":                  {[]tar.Header{file("/etc/shadow")}, "leads out of the package"},
		"a path of thousands of characters": {[]tar.Header{file("./" + strings.Repeat("a", 2000))}, "leads out of the package, or is too long"},
		"a path of hundreds of folders":     {[]tar.Header{file("./" + strings.Repeat("a/", 200) + "a")}, "leads out of the package, or is too long"},
		"a link that climbs":                {[]tar.Header{link("./usr/a", "../../etc/shadow")}, "leads out of the tree"},
		"a file below a link":               {[]tar.Header{link("./usr/a", "/etc"), file("./usr/a/shadow")}, "is there already"},
		"a file in place of a link":         {[]tar.Header{link("./usr/a", "/etc/shadow"), file("./usr/a")}, "is there already"},
		"a file twice":                      {[]tar.Header{file("./usr/a"), file("./usr/a")}, "is there already"},
		"a second name of nothing":          {[]tar.Header{{Typeflag: tar.TypeLink, Name: "./a", Linkname: "./etc/shadow"}}, "is no file before it"},
		"a device":                          {[]tar.Header{{Typeflag: tar.TypeBlock, Name: "./dev/sda", Devmajor: 8}}, "is neither a file nor a folder nor a link"},
		"a file larger than all may be":     {[]tar.Header{{Typeflag: tar.TypeReg, Name: "./a", Size: 1 << 40}}, "the files have more than"},
		"a file that ends early":            {[]tar.Header{{Typeflag: tar.TypeReg, Name: "./a", Size: 1 << 20}}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := mirror(t, map[string][]byte{"a": deb(t, tt.entries...)})
			err := define(t, "package a\n", l).Write(t.Context(), s, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "unpack a 1+deb12") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestAFileThatIsNoPackageIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{
		"empty":                      nil,
		"an archive of nothing":      []byte("!<arch>\n"),
		"a header of anything":       []byte("!<arch>\n" + strings.Repeat("x", 60)),
		"a size below zero":          []byte("!<arch>\n" + fmt.Sprintf("%-48s%-10d`\n", "data.tar", -1)),
		"another compression":        slices.Concat([]byte("!<arch>\n"), member("data.tar.zst", nil)),
		"xz that is none":            slices.Concat([]byte("!<arch>\n"), member("data.tar.xz", []byte("no xz"))),
		"a tar archive that is none": slices.Concat([]byte("!<arch>\n"), member("data.tar", bytes.Repeat([]byte("x"), 1024))),
	} {
		if strings.Contains(name, "xz") {
			if _, err := exec.LookPath("xz"); err != nil {
				t.Error("xz is missing: apt-get install xz-utils")
				continue
			}
		}
		at := filepath.Join(t.TempDir(), "a.deb")
		if err := os.WriteFile(at, text, 0o600); err != nil {
			t.Fatal(err)
		}
		tree, err := debian.NewTree(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Add(at); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAPackageOtherThanThatOfTheLockIsRefusedAndNotKept(t *testing.T) {
	t.Parallel()
	s, l := mirror(t, map[string][]byte{"a": deb(t, file("./a"))})
	right := l.Packages[0]
	for name, change := range map[string]func(p *debian.Package){
		"it has the SHA-256": func(p *debian.Package) { p.SHA256 = strings.Repeat("0", 64) },
		"and not 7":          func(p *debian.Package) { p.Size = 7 },
		"not found":          func(p *debian.Package) { p.Path = "pool/other.deb" },
	} {
		p := right
		change(&p)
		if _, err := s.Fetch(t.Context(), l, p); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "fetch a 1+deb12") {
			t.Errorf("%v, want %q", err, name)
		}
	}
	if kept, err := os.ReadDir(s.Cache); err != nil || len(kept) > 0 {
		t.Errorf("kept: %v (%v)", kept, err)
	}
}

func TestAVersionThatTheMirrorHasNoMoreComesFromTheSnapshot(t *testing.T) {
	t.Parallel()
	_, l := mirror(t, map[string][]byte{"a": deb(t, file("./a"))})
	asked := ""
	body := deb(t, file("./a"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/archive/") {
			asked = r.URL.Path
			_, _ = w.Write(body)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	s := debian.Source{Mirror: server.URL, Snapshot: server.URL + "/archive", Cache: t.TempDir()}
	if _, err := s.Fetch(t.Context(), l, l.Packages[0]); err != nil || asked != "/archive/debian/20260101T000000Z/pool/main/a_1+deb12_amd64.deb" {
		t.Errorf("%v, asked for %q", err, asked)
	}
	server.Close()
	if _, err := s.Fetch(t.Context(), l, l.Packages[0]); err != nil {
		t.Errorf("what is in the cache is fetched again: %v", err)
	}
}

func TestALockThatNamesAnythingElseIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("a", 64)
	for want, line := range map[string]string{
		"is no path of a package": "a 1 debian pool/../../etc/a.deb 1 " + sum,
		"neither debian nor":      "a 1 https://example.org pool/a.deb 1 " + sum,
		"is no name of a package": "../a 1 debian pool/a.deb 1 " + sum,
		"is no version":           "a ../1 debian pool/a.deb 1 " + sum,
		"is no SHA-256":           "a 1 debian pool/a.deb 1 ../../a",
		"size 0 is not from 1":    "a 1 debian pool/a.deb 0 " + sum,
		"size \"x\" is no number": "a 1 debian pool/a.deb x " + sum,
		"3 columns, and not":      "a 1 debian",
	} {
		_, err := debian.ReadLock(strings.NewReader("time 20260101T000000Z\n" + line + "\n"))
		if err == nil || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	if _, err := debian.ReadLock(strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "make locks") {
		t.Error(err)
	}
}

func TestALineThatADefinitionDoesNotHaveIsRefusedWithItsNumber(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"run apt-get", "link /a", "folder tmp 0755", "folder /../a 0755", "folder /a rwx", "file /etc/shadow"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "image"), []byte("package a\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := debian.ReadImage(dir); err == nil || !strings.Contains(err.Error(), "image:2: ") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestALockWithoutAPackageOfItsDefinitionIsRefused(t *testing.T) {
	t.Parallel()
	s, l := mirror(t, map[string][]byte{"a": deb(t, file("./a"))})
	if err := define(t, "package a b\n", l).Write(t.Context(), s, io.Discard); err == nil || !strings.Contains(err.Error(), "lacks package b of the definition (make locks)") {
		t.Error(err)
	}
}

func TestALockHasWhatAPTNames(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
case "$*" in *no-such-package*) echo "E: Unable to locate package no-such-package" >&2; exit 100 ;; esac
echo "'http://deb.debian.org/debian/pool/main/g/gmp/libgmp10_6.2.1%2bdfsg1-1.1_amd64.deb' libgmp10_2%3a6.2.1+dfsg1-1.1_amd64.deb 562588 SHA256:` + strings.Repeat("ab", 32) + `"
echo "'http://deb.debian.org/debian-security/pool/updates/main/o/openssl/libssl3_3.0.22-1_amd64.deb' libssl3_3.0.22-1_amd64.deb 7 SHA256:` + strings.Repeat("cd", 32) + `"
`
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	l, err := debian.Resolve(context.Background(), []string{"a"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	want := []debian.Package{
		{"libgmp10", "2:6.2.1+dfsg1-1.1", "debian", "pool/main/g/gmp/libgmp10_6.2.1+dfsg1-1.1_amd64.deb", 562588, strings.Repeat("ab", 32)},
		{"libssl3", "3.0.22-1", "debian-security", "pool/updates/main/o/openssl/libssl3_3.0.22-1_amd64.deb", 7, strings.Repeat("cd", 32)},
	}
	if l.Time != "20260102T030405Z" || !slices.Equal(l.Packages, want) {
		t.Errorf("%+v", l)
	}
	var text bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	if again, err := debian.ReadLock(&text); err != nil || !slices.Equal(again.Packages, want) {
		t.Errorf("%v: %+v", err, again)
	}
	if _, err := debian.Resolve(context.Background(), []string{"no-such-package"}, time.Now()); err == nil || !strings.Contains(err.Error(), "apt-get update?") {
		t.Error(err)
	}
}
