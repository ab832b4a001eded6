package puller_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

// archiveEntry is an entry of an archive.
type archiveEntry struct {
	name, content, link string
	mode                fs.FileMode // of another kind than a file
	executable          bool
	kind                byte // of tar, if mode does not give it
	size                int64
}

func TestUnpack(t *testing.T) {
	things := []archiveEntry{
		{name: "./", mode: fs.ModeDir},
		{name: "./sub/", mode: fs.ModeDir},
		{name: "./sub/cats.txt", content: "meow"},
		{name: "deep/er/dogs.txt", content: strings.Repeat("woof", 100_000)},
		{name: "run.sh", content: "#!/bin/sh\n", executable: true},
		{name: "empty"},
		{name: "..dots", content: "x"},
		{name: "sub/link", link: "../deep/er/dogs.txt", mode: fs.ModeSymlink},
		{name: "sub/dangling", link: "nothing", mode: fs.ModeSymlink},
		{name: "sub/cats.txt", content: "purr"},
	}
	for form, pack := range map[string]packer{"tar": tarOf, "tar.gz": gzipOf, "tar.zst": zstdOf, "zip": zipOf} {
		for name, writable := range map[string]bool{"to be read": false, "to be changed": true} {
			t.Run(form+" "+name, func(t *testing.T) {
				d, dir := newFakeStore(t), t.TempDir()
				data := d.unpack("/data", archive(t, pack, things...))
				data.Writable = writable
				run(t, dir, pod.Pull{Store: d.fileURL(), Data: []event.Data{data}})
				folder, plain, exe := "drwxr-xr-x", "-r--r--r--", "-r-xr-xr-x"
				if writable {
					folder, plain, exe = "drwxrwxrwx", "-rw-rw-rw-", "-rwxrwxrwx"
				}
				assertLines(t, modes(t, dir), "0 "+folder, "0/..dots "+plain, "0/deep "+folder, "0/deep/er "+folder, "0/deep/er/dogs.txt "+plain,
					"0/empty "+plain, "0/run.sh "+exe, "0/sub "+folder, "0/sub/cats.txt "+plain, "0/sub/dangling -> nothing", "0/sub/link -> ../deep/er/dogs.txt")
				if got := string(read(t, dataPath(dir, 0)+"/sub/cats.txt")); got != "purr" {
					t.Errorf("of two with one name the first counts: %q", got)
				}
				if got := len(read(t, dataPath(dir, 0)+"/sub/link")); got != 400_000 {
					t.Errorf("%d bytes behind the link", got)
				}
			})
		}
	}
}

func TestUnpackBzip2(t *testing.T) {
	// printf meow > cat; tar cj --owner=0 --group=0 cat
	packed, err := base64.StdEncoding.DecodeString(bzip2Tar)
	if err != nil {
		t.Fatal(err)
	}
	d, dir := newFakeStore(t), t.TempDir()
	run(t, dir, pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", packed)}})
	if got := string(read(t, dataPath(dir, 0)+"/cat")); got != "meow" {
		t.Errorf("unpacked: %q", got)
	}
}

func TestUnpackKeepsHardLinks(t *testing.T) {
	d, dir := newFakeStore(t), t.TempDir()
	data := d.unpack("/data", archive(t, tarOf, archiveEntry{name: "a", content: "meow"}, archiveEntry{name: "sub/b", kind: tar.TypeLink, link: "a"}))
	run(t, dir, pod.Pull{Store: d.fileURL(), Data: []event.Data{data}})
	if !same(t, dataPath(dir, 0)+"/a", dataPath(dir, 0)+"/sub/b") {
		t.Error("they are two files")
	}
}

func TestHostileArchives(t *testing.T) {
	bomb := strings.Repeat("\x00", 1<<20)
	tests := map[string]struct {
		things []archiveEntry
		raw    []byte
		pack   packer
		want   string
	}{
		"a way up":                            {things: []archiveEntry{{name: "../evil", content: "x"}}, want: `"../evil" leads out of the archive`},
		"a way up in the middle":              {things: []archiveEntry{{name: "a/../../evil", content: "x"}}, want: "leads out of the archive"},
		"a way up in a zip":                   {things: []archiveEntry{{name: "../evil", content: "x"}}, pack: zipOf, want: `"../evil" leads out of the archive`},
		"an absolute name":                    {things: []archiveEntry{{name: "/evil", content: "x"}}, want: `"/evil" has an absolute name`},
		"an absolute name in a zip":           {things: []archiveEntry{{name: "/evil", content: "x"}}, pack: zipOf, want: `"/evil" has an absolute name`},
		"an absolute link":                    {things: []archiveEntry{{name: "l", link: "/etc/passwd", mode: fs.ModeSymlink}}, want: `"l" is a link that leads out of the archive, to "/etc/passwd"`},
		"an absolute link in a zip":           {things: []archiveEntry{{name: "l", link: "/etc/passwd", mode: fs.ModeSymlink}}, pack: zipOf, want: "leads out of the archive"},
		"a link up":                           {things: []archiveEntry{{name: "l", link: "../..", mode: fs.ModeSymlink}}, want: "leads out of the archive"},
		"a link up from below":                {things: []archiveEntry{{name: "a/b/l", link: "../../../x", mode: fs.ModeSymlink}}, want: "leads out of the archive"},
		"a link up by way of another":         {things: []archiveEntry{{name: "a/b/s", link: "../..", mode: fs.ModeSymlink}, {name: "y", link: "a/b/s/../evil", mode: fs.ModeSymlink}}, want: `"y" is a link that cannot be followed`},
		"a link up by way of another, used":   {things: []archiveEntry{{name: "a/b/s", link: "../..", mode: fs.ModeSymlink}, {name: "y", link: "a/b/s/..", mode: fs.ModeSymlink}, {name: "y/evil", content: "x"}}, want: "y: file exists"},
		"a file through a link out":           {things: []archiveEntry{{name: "l", link: "..", mode: fs.ModeSymlink}, {name: "l/evil", content: "x"}}, want: "leads out of the archive"},
		"a circle of links":                   {things: []archiveEntry{{name: "a", link: "b", mode: fs.ModeSymlink}, {name: "b", link: "a", mode: fs.ModeSymlink}}, want: "cannot be followed"},
		"a hard link out":                     {things: []archiveEntry{{name: "h", kind: tar.TypeLink, link: "../../etc/passwd"}}, want: "leads out of the archive"},
		"an absolute hard link":               {things: []archiveEntry{{name: "h", kind: tar.TypeLink, link: "/etc/passwd"}}, want: "leads out of the archive"},
		"a hard link to nothing":              {things: []archiveEntry{{name: "h", kind: tar.TypeLink, link: "x"}}, want: "no such file"},
		"a hard link to a link":               {things: []archiveEntry{{name: "l", link: "x", mode: fs.ModeSymlink}, {name: "h", kind: tar.TypeLink, link: "l"}}, want: "a link to what is not a file"},
		"a name of a MiB":                     {things: []archiveEntry{{name: strings.Repeat("a/", 500_000) + "x", content: "x"}}, want: "has a name, or leads to one, of more than 4000 bytes"},
		"a name of 4,001 bytes":               {things: []archiveEntry{{name: longName(4001), content: "x"}}, want: "more than 4000 bytes"},
		"a name of 4,001 bytes in a zip":      {things: []archiveEntry{{name: longName(4001), content: "x"}}, pack: zipOf, want: "more than 4000 bytes"},
		"a link to such a name":               {things: []archiveEntry{{name: "l", link: longName(4001), mode: fs.ModeSymlink}}, want: "more than 4000 bytes"},
		"a link to such a name in a zip":      {things: []archiveEntry{{name: "l", link: longName(5000), mode: fs.ModeSymlink}}, pack: zipOf, want: "more than 4000 bytes"},
		"a file in 100 folders":               {things: []archiveEntry{{name: strings.Repeat("a/", 100) + "x", content: "x"}}, want: "lies more than 99 folders deep"},
		"a folder in 100 folders, in a zip":   {things: []archiveEntry{{name: strings.Repeat("a/", 101), mode: fs.ModeDir}}, pack: zipOf, want: "lies more than 99 folders deep"},
		"folders that have no entry":          {things: []archiveEntry{{name: "1/2/3/4/5/6/7/8/9/10/x", content: "x"}}, want: "more than the 10 files and folders"},
		"folders that have no entry in a zip": {things: []archiveEntry{{name: "1/2/3/4/5/x", content: "x"}, {name: "6/7/8/9/x", content: "x"}}, pack: zipOf, want: "more than the 10 files and folders"},
		"one folder again and again":          {things: slices.Repeat([]archiveEntry{{name: "a/", mode: fs.ModeDir}}, 11), want: "more than the 10 files and folders"},
		"a device":                            {things: []archiveEntry{{name: "d", kind: tar.TypeChar}}, want: `"d" is neither a file nor a folder nor a link`},
		"a disk":                              {things: []archiveEntry{{name: "d", kind: tar.TypeBlock}}, want: "neither a file"},
		"a pipe":                              {things: []archiveEntry{{name: "d", kind: tar.TypeFifo}}, want: "neither a file"},
		"a device in a zip":                   {things: []archiveEntry{{name: "d", mode: fs.ModeDevice | fs.ModeCharDevice}}, pack: zipOf, want: "neither a file"},
		"a name with a zero":                  {things: []archiveEntry{{name: "a\x00b", content: "x"}}, pack: zipOf, want: "has a name that no file can have"},
		"a name that is too long":             {things: []archiveEntry{{name: strings.Repeat("x", 300), content: "x"}}, want: "too long"},
		"the folder itself as a file":         {things: []archiveEntry{{name: ".", content: "x"}}, want: `"." is not a folder`},
		"the folder itself as a link":         {things: []archiveEntry{{name: "./", link: "x", mode: fs.ModeSymlink}}, want: "is not a folder"},
		"a file in a file":                    {things: []archiveEntry{{name: "a", content: "x"}, {name: "a/b", content: "x"}}, want: "unpack"},
		"a file in the place of a folder":     {things: []archiveEntry{{name: "a/b", content: "x"}, {name: "a", content: "x"}}, want: "not empty"},
		"more entries than are allowed":       {things: manyEntries(11), want: "it has more than the 10 files and folders that are allowed: executor.pods.unpack.max_files"},
		"more entries in a zip":               {things: manyEntries(11), pack: zipOf, want: "it has more than the 10 files and folders that are allowed: executor.pods.unpack.max_files"},
		"more bytes than are allowed":         {things: []archiveEntry{{name: "a", content: bomb}, {name: "b", content: bomb}, {name: "c", content: bomb}}, pack: gzipOf, want: "it holds more than the 2097152 bytes that are allowed"},
		"more bytes with zstd":                {things: []archiveEntry{{name: "a", content: bomb}, {name: "b", content: bomb}, {name: "c", content: bomb}}, pack: zstdOf, want: "it holds more than the 2097152 bytes that are allowed"},
		"more bytes in a zip":                 {things: []archiveEntry{{name: "a", content: bomb}, {name: "b", content: bomb}, {name: "c", content: bomb}}, pack: zipOf, want: "it holds more than the 2097152 bytes that are allowed"},
		"a size that is too large by itself":  {things: []archiveEntry{{name: "a", size: 1 << 50}}, want: "it holds more than the 2097152 bytes that are allowed"},
		"an archive that is cut":              {raw: truncated(archive(t, tarOf, archiveEntry{name: "a", content: bomb}), 1000), want: "unexpected EOF"},
		"an archive that is cut in its gzip":  {raw: truncated(archive(t, gzipOf, archiveEntry{name: "a", content: string(bytesOf(5000))}), 3000), want: "unexpected EOF"},
		"an archive that is cut in its zstd":  {raw: truncated(archive(t, zstdOf, archiveEntry{name: "a", content: string(bytesOf(5000))}), 3000), want: "unexpected EOF"},
		"a zip that is cut":                   {raw: truncated(archive(t, zipOf, archiveEntry{name: "a", content: "x"}), 60), want: "not a valid zip file"},
		"nothing":                             {raw: []byte{}, want: "it is empty"},
		"a text":                              {raw: []byte(strings.Repeat("text ", 1000)), want: "it is neither a tar archive"},
		"a text with gzip":                    {raw: zipped(t, strings.Repeat("text ", 1000)), want: "it is neither a tar archive"},
		"a text of a few bytes":               {raw: []byte("text"), want: "it is neither a tar archive"},
		"a text of a few bytes with gzip":     {raw: zipped(t, "text"), want: "it is neither a tar archive"},
		"an archive with xz":                  {raw: []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6"), want: "it is compressed with xz, which is not unpacked here: compress it with zstd or gzip"},
		"an archive with lz4":                 {raw: []byte("\x04\x22\x4d\x18dQ"), want: "it is compressed with lz4"},
		"an archive of 7-Zip":                 {raw: []byte("7z\xbc\xaf\x27\x1c\x00\x04"), want: "it is an archive of 7-Zip"},
		"an archive of RAR":                   {raw: []byte("Rar!\x1a\x07\x01\x00"), want: "it is an archive of RAR"},
		"a gzip in a gzip":                    {raw: zipped(t, string(archive(t, gzipOf, archiveEntry{name: "a", content: "x"}))), want: "it is compressed twice, with gzip in gzip: compress it once"},
		"a zstd in a gzip":                    {raw: zipped(t, string(archive(t, zstdOf, archiveEntry{name: "a", content: "x"}))), want: "it is compressed twice, with zstd in gzip"},
		"a zip in a gzip":                     {raw: zipped(t, string(archive(t, zipOf, archiveEntry{name: "a", content: "x"}))), want: "it is compressed twice, with zip in gzip"},
		"an xz in a gzip":                     {raw: zipped(t, "\xfd7zXZ\x00\x00\x04\xe6\xd6"), want: "it is compressed twice, with xz in gzip"},
		"what begins like gzip":               {raw: []byte("\x1f\x8bno"), want: "not an archive that can be unpacked"},
		"what begins like zstd":               {raw: []byte("\x28\xb5\x2f\xfdno"), want: "not an archive that can be unpacked"},
		"what begins like bzip2":              {raw: []byte("BZh9no"), want: "not an archive that can be unpacked"},
		"a zip whose content is not its sum":  {raw: bytes.Replace(archive(t, storedOf, archiveEntry{name: "a", content: "meow"}), []byte("meow"), []byte("woof"), 1), want: "checksum error"},
		"a tar whose header is not its sum":   {raw: flippedAt(archive(t, tarOf, archiveEntry{name: "a", content: "x"}), 0), want: "it is neither a tar archive"},
		"a tar whose later header is damaged": {raw: flippedAt(archive(t, tarOf, archiveEntry{name: "a", content: "x"}, archiveEntry{name: "b"}), 1024), want: "invalid tar header"},
	}
	const atLeast = 40
	if len(tests) < atLeast {
		t.Errorf("%d hostile archives, want %d at least", len(tests), atLeast)
	}
	t.Logf("%d hostile archives", len(tests))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			raw := tt.raw
			if raw == nil {
				pack := tt.pack
				if pack == nil {
					pack = tarOf
				}
				raw = archive(t, pack, tt.things...)
			}
			outer := t.TempDir()
			dir := filepath.Join(outer, "a", "b")
			d := newFakeStore(t)
			cfg := pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", raw)}, MaxFiles: 10, MaxUnpacked: 2 << 20}
			err := puller.Run(t.Context(), dir, cfg, nil)
			own := new(puller.Error)
			if !errors.As(err, &own) || own.Class != event.ClassUser || !strings.Contains(own.Message, tt.want) {
				t.Errorf("Run: %v, want %q of class user", err, tt.want)
			}
			assertNothingLeft(t, outer)
		})
	}
}

// longName returns a name of n bytes with parts that are short enough for any system.
func longName(n int) string { return strings.Repeat(strings.Repeat("x", 199)+"/", n/200+1)[:n-1] + "x" }

func TestAnArchiveMayHoldAsMuchAsSettingsSay(t *testing.T) {
	promise := archive(t, tarOf, archiveEntry{name: "a", size: 1 << 45})
	for name, tt := range map[string]struct {
		files int
		bytes int64
		raw   []byte
		want  string // empty if it is unpacked
	}{
		"by default 1 GiB and 200 times its size": {raw: promise, want: fmt.Sprintf("more than the %d bytes that are allowed in an archive of %d", 1<<30+200*len(promise), len(promise))},
		"more bytes":                       {bytes: 1 << 46, raw: promise, want: "unexpected EOF"}, // they are not refused before they come
		"as many bytes as a number can be": {bytes: math.MaxInt64, raw: promise, want: "unexpected EOF"},
		"ten files":                        {files: 10, raw: archive(t, tarOf, manyEntries(10)...)},
		"a name that is as long and as deep as any may be": {files: 121, raw: archive(t, tarOf, archiveEntry{name: strings.Repeat("a/", 99) + "x"}, archiveEntry{name: longName(4000)})},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeStore(t)
			cfg := pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", tt.raw)}, MaxFiles: tt.files, MaxUnpacked: tt.bytes}
			err := puller.Run(t.Context(), t.TempDir(), cfg, nil)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheLargestLimitOfBytesUnpacksFilesWhole(t *testing.T) {
	d := newFakeStore(t)
	for name, raw := range map[string][]byte{
		"tar": archive(t, tarOf, archiveEntry{name: "a", content: "hello"}),
		"zip": archive(t, zipOf, archiveEntry{name: "a", content: "hello"}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", raw)}, MaxUnpacked: math.MaxInt64}
			if err := puller.Run(t.Context(), dir, cfg, nil); err != nil {
				t.Fatal(err)
			}
			var texts []string
			err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					text, failed := os.ReadFile(path)
					texts, err = append(texts, string(text)), failed
				}
				return err
			})
			if err != nil || !slices.Contains(texts, "hello") {
				t.Errorf("the files hold %q, %v", texts, err)
			}
		})
	}
}

func TestAnArchiveOfLinksWithLongNamesIsRefused(t *testing.T) {
	d := newFakeStore(t)
	raw := archive(t, zstdOf, slices.Repeat([]archiveEntry{{name: longName(3999), link: "x", mode: fs.ModeSymlink}}, 8<<20/3999+1)...)
	err := puller.Run(t.Context(), t.TempDir(), pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", raw)}}, nil)
	if own := new(puller.Error); !errors.As(err, &own) || own.Class != event.ClassUser || !strings.Contains(own.Message, "the names of its symbolic links have more than 8388608 bytes") {
		t.Errorf("Run: %v", err)
	}
}

// assertNothingLeft checks that a refused archive has left no file, in the folder or elsewhere.
func assertNothingLeft(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (!e.IsDir() || filepath.Dir(path) == filepath.Join(dir, "a", "b", "data")) {
			t.Errorf("left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func FuzzUnpack(f *testing.F) {
	for _, pack := range []packer{tarOf, gzipOf, zstdOf, zipOf, storedOf} {
		f.Add(archive(f, pack, archiveEntry{name: "a/b", content: "meow"}, archiveEntry{name: "l", link: "a/b", mode: fs.ModeSymlink}))
	}
	f.Add([]byte("BZh9"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := fakeStore{t, t.TempDir()}
		outer := t.TempDir()
		if err := os.Mkdir(filepath.Join(d.dir, "objects"), 0o755); err != nil {
			t.Fatal(err)
		}
		cfg := pod.Pull{Store: d.fileURL(), Data: []event.Data{d.unpack("/data", raw)}, MaxFiles: 100, MaxUnpacked: 1 << 20}
		err := puller.Run(t.Context(), filepath.Join(outer, "in"), cfg, nil)
		if own := new(puller.Error); err != nil && !errors.As(err, &own) {
			t.Errorf("Run: %v", err)
		}
		others, err := filepath.Glob(filepath.Join(outer, "*"))
		if err != nil || len(others) != 1 {
			t.Errorf("it wrote elsewhere: %q, %v", others, err)
		}
	})
}

type packer func(tb testing.TB, w io.Writer, things []archiveEntry)

func archive(tb testing.TB, pack packer, entries ...archiveEntry) []byte {
	tb.Helper()
	var b bytes.Buffer
	pack(tb, &b, entries)
	return b.Bytes()
}

func tarOf(tb testing.TB, w io.Writer, entries []archiveEntry) {
	tb.Helper()
	a := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o600, Size: int64(len(e.content)) + e.size}
		if e.executable {
			h.Mode = 0o4755
		}
		switch {
		case e.mode.IsDir():
			h.Typeflag = tar.TypeDir
		case e.mode&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
		}
		if err := a.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(a, e.content); err != nil {
			tb.Fatal(err)
		}
		if e.size > 0 {
			return // its header has a size that it lacks
		}
	}
	if err := a.Close(); err != nil {
		tb.Fatal(err)
	}
}

func gzipOf(tb testing.TB, w io.Writer, entries []archiveEntry) {
	tb.Helper()
	z := gzip.NewWriter(w)
	tarOf(tb, z, entries)
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
}

func zstdOf(tb testing.TB, w io.Writer, entries []archiveEntry) {
	tb.Helper()
	z, err := zstd.NewWriter(w)
	if err != nil {
		tb.Fatal(err)
	}
	tarOf(tb, z, entries)
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
}

func zipOf(tb testing.TB, w io.Writer, entries []archiveEntry) {
	tb.Helper()
	zipBy(tb, w, entries, zip.Deflate)
}

func storedOf(tb testing.TB, w io.Writer, entries []archiveEntry) {
	tb.Helper()
	zipBy(tb, w, entries, zip.Store)
}

func zipBy(tb testing.TB, w io.Writer, entries []archiveEntry, method uint16) {
	tb.Helper()
	a := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: method}
		mode := e.mode | 0o600
		if e.executable {
			mode |= 0o111
		}
		h.SetMode(mode)
		f, err := a.CreateHeader(h)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(f, e.content+e.link); err != nil {
			tb.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		tb.Fatal(err)
	}
}

func manyEntries(n int) []archiveEntry {
	all := make([]archiveEntry, n)
	for i := range all {
		all[i] = archiveEntry{name: strings.Repeat("x", i+1), content: "x"}
	}
	return all
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func truncated(b []byte, to int) []byte { return b[:to] }

func flippedAt(b []byte, at int) []byte {
	b[at] ^= 0xff
	return b
}

const bzip2Tar = "QlpoOTFBWSZTWWdUUTsAAHB7hMmAAEFAAHUAAAJqAp6AAACACCAAVDKBGEyNGNNQSJIGgaAGndXNwhB9YAkZaXjnhaZtJBAMjyIkktpAdsk8xr5A2+vlbBAiS0sHsVW8EkD8XckU4UJBnVFE7A=="
