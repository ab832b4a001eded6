package download_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/download"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

var errCut = errors.New("cut")

// serve hands out a text from an offset on, in pieces of 3 bytes, and breaks
// after so many pieces; -1 is never.
func serve(text string, pieces int, offsets *[]int64) func(string, int64) iter.Seq2[[]byte, error] {
	return func(_ string, offset int64) iter.Seq2[[]byte, error] {
		*offsets = append(*offsets, offset)
		return func(yield func([]byte, error) bool) {
			for rest, n := text[offset:], 0; rest != ""; n++ {
				if n == pieces {
					yield(nil, errCut)
					return
				}
				size := min(3, len(rest))
				if !yield([]byte(rest[:size]), nil) {
					return
				}
				rest = rest[size:]
			}
		}
	}
}

func artifact(name string) *baiv1.Artifact {
	sum := sha256.Sum256([]byte(text))
	return &baiv1.Artifact{Name: name, Size: int64(len(text)), Sha256: hex.EncodeToString(sum[:])}
}

func saver(t *testing.T, dir string) download.Saver {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return download.Saver{Root: root}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const text = "0123456789"

func TestAFileThatWasInterruptedIsGoneOnWith(t *testing.T) {
	dir := t.TempDir()
	var offsets []int64
	s := saver(t, dir)
	s.Read = serve(text, 2, &offsets)
	if _, err := s.Save(artifact("1/a/x")); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if _, there := tree(t, dir)["1/a/x"]; there {
		t.Error("half a file has its name")
	}
	s.Read = serve(text, -1, &offsets)
	var progress []int64
	s.OnProgress = func(done int64) { progress = append(progress, done) }
	if saved, err := s.Save(artifact("1/a/x")); err != nil || saved.Already {
		t.Fatal(saved, err)
	}
	if diff := cmp.Diff(map[string]string{"1/a/x": text}, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int64{{0, 6}, {9, 10}}, [][]int64{offsets, progress}); diff != "" {
		t.Errorf("offsets and what was told (-want +got):\n%s", diff)
	}
	if saved, err := s.Save(artifact("1/a/x")); err != nil || !saved.Already || len(offsets) != 2 {
		t.Errorf("the same again: %v, %v, %d reads", saved, err, len(offsets))
	}
}

func TestWhatIsDamagedIsThrownAway(t *testing.T) {
	for name, sent := range map[string]string{"other bytes": "0123456x89", "too short": "01234", "too long": "0123456789abc"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := saver(t, dir)
			s.Read = serve(sent, -1, new([]int64))
			_, err := s.Save(artifact("x"))
			if _, ok := errors.AsType[*download.DamagedError](err); !ok || len(tree(t, dir)) != 0 {
				t.Errorf("%v, %v", err, tree(t, dir))
			}
		})
	}
}

func TestNoFileIsOverwrittenUnlessThatIsWanted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := saver(t, dir)
	s.Read = serve(text, -1, new([]int64))
	_, err := s.Save(artifact("x"))
	if _, ok := errors.AsType[*download.ExistsError](err); !ok || tree(t, dir)["x"] != "mine" {
		t.Errorf("%v, %v", err, tree(t, dir))
	}
	s.Force = true
	if _, err := s.Save(artifact("x")); err != nil || tree(t, dir)["x"] != text {
		t.Errorf("%v, %v", err, tree(t, dir))
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(artifact("folder")); err == nil {
		t.Error("a folder was overwritten")
	}
}

func TestAFileThatComesMeanwhileIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	s := saver(t, dir)
	s.Read = serve(text, -1, new([]int64))
	s.OnProgress = func(int64) {
		if err := os.WriteFile(filepath.Join(dir, "x"), []byte("mine"), 0o600); err != nil {
			t.Error(err)
		}
	}
	_, err := s.Save(artifact("x"))
	if _, ok := errors.AsType[*download.ExistsError](err); !ok || tree(t, dir)["x"] != "mine" {
		t.Errorf("%v, %v", err, tree(t, dir))
	}
}

func TestNothingIsWrittenElsewhere(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := saver(t, dir)
	s.Read, s.Force = serve(text, -1, new([]int64)), true
	for _, name := range []string{"../x", "/etc/x", "a/../../x", "..", ".", "", "a//b", "a/", "./x", "a\x00b", "link/x", strings.Repeat("x", 300)} {
		if _, err := s.Save(artifact(name)); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if got := tree(t, outside); len(got) != 0 {
		t.Errorf("outside: %v", got)
	}
	for _, name := range []string{"1/benchmark-0/results/out.json", "a..b", "...", "完成.txt", " x", `a\b`, "c:x", "a\nb", "a\u202eb", `..\x`, strings.Repeat("x", 255)} {
		if _, err := s.Save(artifact(name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzANameThatIsTakenLiesBelowTheFolder(f *testing.F) {
	for _, name := range []string{"a/b", "../x", "/x", "a/../b", "..\\x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if download.CheckName(name) == nil && !filepath.IsLocal(name) {
			t.Errorf("%q is taken", name)
		}
	})
}
