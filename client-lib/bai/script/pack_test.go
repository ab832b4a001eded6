package script_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/bai/script"
)

// golden is the digest of tree's archive. If it changed, platforms would store all code
// again.
const golden = "bcb7240e14c583b13c1e4bf5c2d8a702dd39f1075cfb67abda428e6285bc1193"

// tree makes a folder with something of everything in it.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file(t, dir, "run.sh", "#!/bin/sh\necho hello\n", 0o755)
	file(t, dir, "lib/train.py", "print('loss=1')\n", 0o600)
	file(t, dir, "lib.txt", "sorted after the folder's files\n", 0o644)
	file(t, dir, "ä "+strings.Repeat("long", 40), "a name that no old tar has\n", 0o644)
	file(t, dir, ".git/config", "of the repository", 0o644)
	file(t, dir, "lib/.git", "gitdir: elsewhere", 0o644)
	try(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	try(t, os.Symlink("train.py", filepath.Join(dir, "lib", "main.py")))
	try(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	return dir
}

func file(t *testing.T, dir, name, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	try(t, os.MkdirAll(filepath.Dir(path), 0o755))
	try(t, os.WriteFile(path, []byte(content), mode))
	try(t, os.Chmod(path, mode))
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func hasArchiveMagic(t *testing.T, path string) *script.Archive {
	t.Helper()
	a, err := script.Pack(path)
	try(t, err)
	t.Cleanup(func() { try(t, a.Close()) })
	return a
}

// entries lists the entries of an archive, a line each.
func entries(t *testing.T, a *script.Archive) []string {
	t.Helper()
	var all []string
	for r := tar.NewReader(io.NewSectionReader(a, 0, a.Size)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		try(t, err)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("%s says whose it is, or when it was made: %+v", h.Name, h)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%c %o %s %s", h.Typeflag, h.Mode, h.Name, h.Linkname)))
	}
}

func TestAFolderIsPackedSortedAndWithoutWhatIsNotItsOwn(t *testing.T) {
	want := []string{
		"2 777 dangling nowhere", "5 755 empty/", "5 755 lib/", "2 777 lib/main.py train.py", "0 644 lib/train.py", "0 644 lib.txt",
		"0 755 run.sh", "0 644 ä " + strings.Repeat("long", 40),
	}
	if diff := cmp.Diff(want, entries(t, hasArchiveMagic(t, tree(t)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheSameFilesGiveTheSameBytesWhereverAndWheneverTheyAre(t *testing.T) {
	first, dir := tree(t), tree(t)
	old := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	try(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type() == 0 {
			err = os.Chtimes(path, old, old)
		}
		return err
	}))
	a, b := hasArchiveMagic(t, first), hasArchiveMagic(t, dir)
	if a.SHA256 != b.SHA256 || a.SHA256 != golden {
		t.Errorf("digests %s and %s, want %s", a.SHA256, b.SHA256, golden)
	}
	file(t, dir, "run.sh", "#!/bin/sh\necho hello\n", 0o644)
	if c := hasArchiveMagic(t, dir); c.SHA256 == golden {
		t.Error("a file that cannot be executed any more makes no difference")
	}
}

func TestTheDigestIsThatOfTheBytes(t *testing.T) {
	a := hasArchiveMagic(t, tree(t))
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(a, 0, 1<<40))
	try(t, err)
	if got := hex.EncodeToString(sum.Sum(nil)); n != a.Size || got != a.SHA256 {
		t.Errorf("%d bytes with digest %s, not %d with %s", n, got, a.Size, a.SHA256)
	}
}

func TestWhatThePatternsMeanIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.py", "a.pyc", "sub/b.pyc", "out/x", "sub/out/y", "sub/keep/out", "data/big", "sub/data/small"} {
		file(t, dir, name, name, 0o644)
	}
	file(t, dir, script.IgnoreFile, "# no caches\n*.pyc\n\n out/ \n/data\n", 0o644)
	want := []string{"0 644 a.py", "5 755 sub/", "5 755 sub/data/", "0 644 sub/data/small", "5 755 sub/keep/", "0 644 sub/keep/out"}
	if diff := cmp.Diff(want, entries(t, hasArchiveMagic(t, dir))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFileIsPackedAloneAndAnArchiveIsTakenAsItIs(t *testing.T) {
	dir := tree(t)
	if diff := cmp.Diff([]string{"0 755 run.sh"}, entries(t, hasArchiveMagic(t, filepath.Join(dir, "run.sh")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	made := hasArchiveMagic(t, dir)
	ready := filepath.Join(t.TempDir(), "code.bin")
	content, err := io.ReadAll(io.NewSectionReader(made, 0, made.Size))
	try(t, err)
	try(t, os.WriteFile(ready, content, 0o600))
	if a := hasArchiveMagic(t, ready); a.SHA256 != made.SHA256 || a.Size != made.Size {
		t.Errorf("an archive is packed anew: %+v", a)
	}
	try(t, os.WriteFile(ready, []byte("PK\x03\x04 and so on"), 0o600))
	if a := hasArchiveMagic(t, ready); a.Size != 14 {
		t.Errorf("a zip archive is packed anew: %d bytes", a.Size)
	}
}

func TestWhatCannotBeSentIsRefusedByName(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(t *testing.T, dir string) string
		want string
	}{
		"nothing at all":                 {func(_ *testing.T, dir string) string { return filepath.Join(dir, "none") }, "no such file"},
		"an empty folder":                {func(_ *testing.T, dir string) string { return dir }, "there is nothing in it to send along"},
		"an absolute link":               {link("/etc/passwd", "x"), `"x" is a link that leads out of the folder, to "/etc/passwd"`},
		"a link that leads out":          {link("../../x", "sub/x"), `"sub/x" is a link that leads out of the folder, to "../../x"`},
		"a link that leads out by links": {through, `"b" is a link that leads out of the folder, to "a/.."`},
		"a pipe": {func(t *testing.T, dir string) string {
			t.Helper()
			try(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
			return dir
		}, `"pipe" is neither a file nor a folder nor a link`},
		"a pattern that is none": {func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir, script.IgnoreFile, "ok\n[a-\n", 0o644)
			return dir
		}, `.baiignore:2: "[a-" is not a pattern`},
		"an archive that is none": {func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir, "code.tar.gz", "hello", 0o644)
			return filepath.Join(dir, "code.tar.gz")
		}, "it has the name of an archive and is none"},
		"more than can be sent": {func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir, "huge", "", 0o644)
			try(t, os.Truncate(filepath.Join(dir, "huge"), script.MaxSize+1))
			return filepath.Join(dir, "huge")
		}, "it has more than 1024 MiB: leave out what is no code"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := script.Pack(tt.make(t, t.TempDir()))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func link(target, name string) func(t *testing.T, dir string) string {
	return func(t *testing.T, dir string) string {
		t.Helper()
		try(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		try(t, os.Symlink(target, filepath.Join(dir, name)))
		return dir
	}
}

// through makes a link whose text stays in the folder and whose target does not.
func through(t *testing.T, dir string) string {
	t.Helper()
	try(t, os.Symlink(".", filepath.Join(dir, "a")))
	try(t, os.Symlink("a/..", filepath.Join(dir, "b")))
	return dir
}

func TestNothingIsLeftOfWhatWasPacked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := tree(t)
	a, err := script.Pack(dir)
	try(t, err)
	try(t, a.Close())
	try(t, os.Symlink("/etc", filepath.Join(dir, "out")))
	if _, err := script.Pack(dir); err == nil {
		t.Error("packed a link that leads out")
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	try(t, err)
	for _, f := range left {
		t.Errorf("left behind: %s", f.Name())
	}
}

func TestWhatMayHoldSecretsIsLeftOutAndNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"run.sh", ".env", ".env.production", ".env.example", "certs/server.PEM", "id_ed25519", "id_ed25519.pub", "id_map.py", ".aws/credentials", "deep/.kube/config", "ca/keep.pem", ".netrc",
	} {
		file(t, dir, name, "x", 0o644)
	}
	file(t, dir, ".baiignore", "!/ca/*.pem\n", 0o644)
	a := hasArchiveMagic(t, dir)
	var got []string
	for _, e := range entries(t, a) {
		got = append(got, strings.Fields(e)[0])
	}
	text := strings.Join(entries(t, a), "\n")
	for _, name := range []string{".env.production", "server.PEM", "id_ed25519\n", "credentials", "config", ".netrc"} {
		if strings.Contains(text+"\n", name) {
			t.Errorf("%s is sent along: %q", name, got)
		}
	}
	for _, name := range []string{"run.sh", ".env.example", "id_ed25519.pub", "id_map.py", "keep.pem"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not sent along: %q", name, got)
		}
	}
	want := []string{".aws", ".env", ".env.production", ".netrc", "certs/server.PEM", "deep/.kube", "id_ed25519"}
	if diff := cmp.Diff(want, a.Guarded); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}
