package git_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's own digest
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestEveryNameOfACommitIsHandedOn(t *testing.T) {
	p := new(testPack)
	file := p.add(plumbing.BlobObject, "one")
	folder := p.add(plumbing.TreeObject, entry("100644", ".git", file)+entry("100644", "a\nb", file)+entry("120000", "link", file))
	root := p.add(plumbing.TreeObject, entry("40000", "..", folder)+entry("100755", "git~1", file)+entry("160000", "sub", file))
	r := p.fetched(t, root)
	want := map[string]string{"../.git": "one", "../a\nb": "one", "../link": "-> one", "git~1*": "one"}
	if diff := cmp.Diff(want, walk(t, r, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"": "one"}, walk(t, r, "../a\nb")); diff != "" {
		t.Errorf("a file (-want +got):\n%s", diff)
	}
	for _, path := range []string{"sub", "git~1/x", "../a"} {
		if err := r.Walk(path, anyFile, anyLink); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Walk(%q): %v", path, err)
		}
	}
}

func TestACommitThatWasNotSentWholeIsAnError(t *testing.T) {
	p := new(testPack)
	file := p.add(plumbing.BlobObject, "one")
	gone := plumbing.ComputeHash(plumbing.TreeObject, []byte("gone"))
	for name, tt := range map[string]struct {
		tree string
		path string
		err  error
		want string
	}{
		"a folder that is missing":        {entry("100644", "a", file) + entry("40000", "dir", gone), "", store.ErrNotFound, "dir"},
		"a folder on the path":            {entry("40000", "dir", gone), "dir/x", store.ErrNotFound, "tree " + gone.String()},
		"a folder that is a file":         {entry("40000", "dir", file), "", store.ErrNotFound, "dir"},
		"a file that is missing":          {entry("100644", "a", gone), "", store.ErrNotFound, "a"},
		"a file that is asked for":        {entry("100644", "a", gone), "a", store.ErrNotFound, "blob " + gone.String()},
		"a folder that is damaged":        {entry("40000", "dir", p.add(plumbing.TreeObject, "100644 x")), "", errors.ErrUnsupported, "dir"},
		"a link with a target of 5000 B":  {entry("120000", "l", p.add(plumbing.BlobObject, strings.Repeat("x", 5000))), "", errors.ErrUnsupported, "5000"},
		"folders 1001 deep in each other": {entry("40000", "d", deep(p, file, 1001)), "", errors.ErrUnsupported, "1000 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			commit := *p
			err := commit.fetched(t, commit.add(plumbing.TreeObject, tt.tree)).Walk(tt.path, anyFile, anyLink)
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Walk: %v, want %v with %q", err, tt.err, tt.want)
			}
		})
	}
}

func TestFoldersWithoutFilesEndHoweverOftenTheyAreNamed(t *testing.T) {
	p := new(testPack)
	folder := p.add(plumbing.TreeObject, "")
	for range 100 { // 2^100 paths
		folder = p.add(plumbing.TreeObject, entry("40000", "a", folder)+entry("40000", "b", folder))
	}
	if diff := cmp.Diff(map[string]string{}, walk(t, p.fetched(t, folder), "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALargeFileIsReadInPieces(t *testing.T) {
	p := new(testPack)
	base := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	offset := len(p.objects)
	p.add(plumbing.BlobObject, base)
	changed := strings.Repeat(base[:1<<16], 17) + "new"
	p.addDelta(offset, delta(len(base), len(changed), strings.Repeat("\x80", 17), "\x03new")) // 0x80 copies the first 64 KiB
	file := plumbing.ComputeHash(plumbing.BlobObject, []byte(changed))
	root := p.add(plumbing.TreeObject, entry("100644", "base", plumbing.ComputeHash(plumbing.BlobObject, []byte(base)))+entry("100644", "changed", file))
	if diff := cmp.Diff(map[string]string{"base": base, "changed": changed}, walk(t, p.fetched(t, root), "")); diff != "" {
		t.Errorf("the files differ, by %d bytes of text", len(diff))
	}
}

func TestAPackThatWouldFillTheMemoryIsRefusedBeforeItIsRead(t *testing.T) {
	const large, most = 101 << 20, 100 << 20
	for name, tt := range map[string]struct {
		build    func(p *testPack)
		tooLarge bool
		want     string
	}{
		"a large file": {func(p *testPack) { p.addRaw(plumbing.BlobObject, large, "", "short") }, true, "a file of 105906176 bytes"},
		"a large difference": {
			func(p *testPack) { p.addRaw(plumbing.REFDeltaObject, large, strings.Repeat("x", 20), "short") },
			true, "a file of 105906176 bytes",
		},
		"a difference that makes a large file": {func(p *testPack) {
			p.add(plumbing.BlobObject, "one")
			p.addDelta(0, delta(3, large))
		}, true, "a file of 105906176 bytes"},
		"differences to differences": {func(p *testPack) {
			p.add(plumbing.BlobObject, "one")
			for at := 0; len(p.offsets) < 4; {
				next := len(p.objects)
				p.addDelta(at, delta(3, most))
				at = next
			}
		}, true, "of more than 256 MiB together"},
		"differences to bases that are named by hash": {func(p *testPack) {
			for range 3 {
				d := delta(3, most)
				p.addRaw(plumbing.REFDeltaObject, len(d), strings.Repeat("x", 20), d)
			}
		}, true, "of more than 256 MiB together"},
		"very many objects":             {func(p *testPack) { p.count = 1<<20 + 1 }, true, "1048577 files and folders"},
		"less than its size says":       {func(p *testPack) { p.addRaw(plumbing.BlobObject, 100, "", "short") }, false, "malformed PACK"},
		"more than its size says":       {func(p *testPack) { p.addRaw(plumbing.BlobObject, 1, "", "short") }, false, "exceeds declared size"},
		"a difference without its size": {func(p *testPack) { p.add(plumbing.BlobObject, "one"); p.addDelta(0, "\x80") }, false, "invalid delta"},
		"a pack that is cut":            {func(p *testPack) { p.add(plumbing.BlobObject, "one"); p.count = 2; p.cut = true }, false, "read the pack"},
	} {
		t.Run(name, func(t *testing.T) {
			p := new(testPack)
			tt.build(p)
			r := p.open(t, plumbing.NewHash(strings.Repeat("01", 20)))
			err := r.Fetch(t.Context(), func(int) error { return nil })
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, store.ErrTooLarge) != tt.tooLarge {
				t.Errorf("Fetch: %v, want %q", err, tt.want)
			}
		})
	}
}

func anyFile(string, int64, bool, io.Reader) error { return nil }

func anyLink(string, string) error { return nil }

// deep adds n folders, each in the next, around a file.
func deep(p *testPack, file plumbing.Hash, n int) plumbing.Hash {
	folder := p.add(plumbing.TreeObject, entry("100644", "a", file))
	for range n {
		folder = p.add(plumbing.TreeObject, entry("40000", "d", folder))
	}
	return folder
}

// entry is an entry of a tree.
func entry(mode, name string, of plumbing.Hash) string {
	return mode + " " + name + "\x00" + string(of[:])
}

// delta is a difference between objects of these sizes.
func delta(from, to int, commands ...string) string {
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(from)), uint64(to))) + strings.Join(commands, "")
}

// testPack is a pack as a server could send it.
type testPack struct {
	objects []byte
	offsets []int
	count   int // that the header says, if not that of the objects
	cut     bool
}

// add adds an object, and returns its hash.
func (p *testPack) add(t plumbing.ObjectType, content string) plumbing.Hash {
	p.addRaw(t, len(content), "", content)
	return plumbing.ComputeHash(t, []byte(content))
}

// addDelta adds a difference to the object at an offset among the objects.
func (p *testPack) addDelta(base int, d string) {
	back := len(p.objects) - base
	reference := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		reference = append([]byte{byte(back&0x7f) | 0x80}, reference...)
	}
	p.addRaw(plumbing.OFSDeltaObject, len(d), string(reference), d)
}

// addRaw adds an object whose header says size.
func (p *testPack) addRaw(t plumbing.ObjectType, size int, reference, content string) {
	p.offsets = append(p.offsets, len(p.objects))
	header := []byte{byte(t)<<4 | byte(size&0x0f)}
	for size >>= 4; size > 0; size >>= 7 {
		header[len(header)-1] |= 0x80
		header = append(header, byte(size&0x7f))
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = io.WriteString(w, content) // a buffer takes all
	_ = w.Close()
	p.objects = append(append(append(p.objects, header...), reference...), packed.Bytes()...)
}

// bytes returns the pack.
func (p *testPack) bytes() []byte {
	count := max(p.count, len(p.offsets))
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), uint32(count)) //nolint:gosec // a small one
	b = append(b, p.objects...)
	if p.cut {
		return b
	}
	sum := sha1.Sum(b) //nolint:gosec // git's own digest
	return append(b, sum[:]...)
}

// open opens a repository that sends the pack, at a commit.
func (p *testPack) open(t *testing.T, commit plumbing.Hash) *git.Repository {
	t.Helper()
	line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			_, _ = io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+line(commit.String()+" refs/heads/main\x00ofs-delta\n")+"0000")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, line("NAK\n"))
		_, _ = w.Write(p.bytes())
	}))
	t.Cleanup(server.Close)
	r, err := git.Opener{}.Open(t.Context(), server.URL+"/repo", "main", "", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// fetched returns a repository that has fetched the pack, at a commit of the tree.
func (p *testPack) fetched(t *testing.T, tree plumbing.Hash) *git.Repository {
	t.Helper()
	r := p.open(t, p.add(plumbing.CommitObject, "tree "+tree.String()+"\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\nx\n"))
	if err := r.Fetch(t.Context(), func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return r
}
