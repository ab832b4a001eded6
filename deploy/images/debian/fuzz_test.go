package debian_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/deploy/images/debian"
)

// FuzzAdd checks that whatever a package has, the tree has no path that leads out of it, and
// nothing below a link.
func FuzzAdd(f *testing.F) {
	data := func(entries ...tar.Header) []byte {
		var text bytes.Buffer
		w := tar.NewWriter(&text)
		for _, h := range entries {
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
		}
		return text.Bytes()
	}
	f.Add(data(folder("./bin"), link("./bin/a", "b"), tar.Header{Typeflag: tar.TypeReg, Name: "./usr/a"}))
	f.Add(data(link("./usr/a", "/etc"), tar.Header{Typeflag: tar.TypeReg, Name: "./usr/a/b"}))
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(t.TempDir(), "a.deb")
		if err := os.WriteFile(name, append([]byte("!<arch>\n"), member("data.tar", text)...), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		tree, err := debian.NewTree(&out)
		if err != nil {
			t.Fatal(err)
		}
		if tree.Add(name) != nil || tree.Close() != nil {
			return
		}
		links := map[string]bool{}
		for r := tar.NewReader(&out); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			clean := strings.TrimSuffix(h.Name, "/")
			if path.Clean("/"+clean) != "/"+clean {
				t.Errorf("path %q", h.Name)
			}
			for dir := path.Dir(clean); dir != "."; dir = path.Dir(dir) {
				if links[dir] {
					t.Errorf("%q lies below a link", h.Name)
				}
			}
			links[clean] = h.Typeflag == tar.TypeSymlink
		}
	})
}
