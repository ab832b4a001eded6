package archive_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/benchmark-ai/bai/client-lib/bai/archive"
)

const runID = "01kdyt1q880000000000000001"

// namedFile is a file of a run.
type namedFile struct{ name, content string }

// runFiles are the files that a platform sends of a run.
func runFiles() []namedFile {
	source := func(stream string) string {
		return `"attempt":1,"role":"benchmark","index":0,"pod":"p-1","container":"main","stream":"` + stream + `"`
	}
	return []namedFile{
		{"run.json", "{\n  \"id\": \"" + runID + "\"\n}\n"},
		{"descriptor/submitted.toml", "# sent\n"},
		{"descriptor/resolved.toml", "# run\n"},
		{"manifests/1.yaml", "kind: Job\n"},
		{"events.jsonl", `{"revision":1}` + "\n" + `{"revision":2}` + "\n"},
		{"sources.jsonl", ""},
		{"artifacts.jsonl", `{"name":"1/benchmark-0/füße"}` + "\n"},
		{"metrics/samples.jsonl", `{` + source("metrics") + `,"seq":1,"name":"loss, \"x\"","value":0.5,"unit":"1","time":"1000000001","step":3,"labels":{"b":"2","a":"1"}}` + "\n" +
			`{` + source("metrics") + `,"seq":2,"sub":1,"name":"loss","value":null,"special":"NaN","time":"1000000002"}` + "\n" +
			`{` + source("metrics") + `,"seq":3,"name":"loss","value":null,"special":"-Inf","time":"1000000003"}` + "\n"},
		{"logs/lines.jsonl", `{` + source("output") + `,"seq":1,"time":"1","text":"one"}` + "\n" +
			`{` + source("output") + `,"seq":2,"err":true,"time":"2","text":"oh <no> \u2028"}` + "\n" +
			`{` + source("output") + `,"seq":3,"time":"3","text":"two","open":true}` + "\n" +
			strings.ReplaceAll(`{`+source("log")+`,"seq":1,"time":"1","text":"three"}`, "p-1", "../../p") + "\n"},
		{"artifacts/1/benchmark-0/füße", strings.Repeat("\x00\x01", 1<<20)},
		{"artifacts/1/benchmark-0/empty", ""},
	}
}

func runManifest() archive.Manifest {
	return archive.Manifest{Format: archive.Format, Run: runID, Platform: "v1", Complete: true, Dropped: 2}
}

// write writes files in pieces of a size.
func write(w *archive.Writer, files []namedFile, size int) error {
	for _, f := range files {
		for b := []byte(f.content); ; {
			n := min(size, len(b))
			if err := w.Write(f.name, b[:n], n == len(b)); err != nil {
				return err
			}
			if b = b[n:]; len(b) == 0 {
				break
			}
		}
	}
	return nil
}

// make writes an archive.
func writeArchive(t *testing.T, sink archive.Sink, err error, size int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	w := archive.NewWriter(sink, runManifest())
	if err := write(w, runFiles(), size); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

// folder returns a folder with an archive.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	sink, err := archive.Folder(dir, false)
	writeArchive(t, sink, err, 100_000)
	return dir
}

// tarArchive returns a tar.zst with an archive.
func tarArchive(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.tar.zst")
	sink, err := archive.Tar(file, false)
	writeArchive(t, sink, err, 100_000)
	return file
}

// tree returns all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// open returns the archive at a path.
func open(t *testing.T, path string) archive.Source {
	t.Helper()
	s, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// members returns the files of a tar.zst, in their order.
func members(t *testing.T, file string) (names []string, files map[string]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files = make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		files[h.Name] = string(b)
	}
}

// tarOf returns a tar.zst of headers and contents.
func tarOf(tb testing.TB, heads []tar.Header, contents []string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		tb.Fatal(err)
	}
	w := tar.NewWriter(z)
	for i, h := range heads {
		h.Mode, h.Size = 0o644, int64(len(contents[i]))
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(&h); err != nil {
			tb.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, contents[i]); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// sourceOf returns the archive that files are; a manifest that fits them is added
// where there is none.
func sourceOf(tb testing.TB, files ...namedFile) archive.Source {
	tb.Helper()
	if !slices.ContainsFunc(files, func(f namedFile) bool { return f.name == archive.ManifestName }) {
		m := runManifest()
		for _, f := range files {
			sum := sha256.Sum256([]byte(f.content))
			m.Files = append(m.Files, archive.File{Name: f.name, Size: int64(len(f.content)), SHA256: hex.EncodeToString(sum[:])})
		}
		b, err := json.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, namedFile{archive.ManifestName, string(b)})
	}
	return archive.Loose(func(name string) (io.ReadCloser, error) {
		i := slices.IndexFunc(files, func(f namedFile) bool { return f.name == name })
		if i < 0 {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(files[i].content)), nil
	})
}

// withContent returns the files with another content of one.
func withContent(name string, change func(string) string) []namedFile {
	files := runFiles()
	i := slices.IndexFunc(files, func(f namedFile) bool { return f.name == name })
	if i < 0 {
		return append(files, namedFile{name, change("")})
	}
	files[i].content = change(files[i].content)
	return files
}

func replacing(old, by string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, by, 1) }
}
