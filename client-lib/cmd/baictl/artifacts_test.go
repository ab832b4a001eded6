package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestArtifactsAreFetchedCheckedAndNotOverwritten(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: "r", Owner: "ann"})
	p.AddArtifact(id, "1/benchmark-0/a/x.json", strings.Repeat("x", 5000))
	p.AddArtifact(id, "1/benchmark-0/完成", "done")
	dir := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	network := baitest.Break(t, p.Addr(), 20, 2000)
	got := runPiped(t, network.Addr(), "artifacts", "get", "r", "--to", dir)
	expect(t, got, 0, "")
	if read("1/benchmark-0/a/x.json") != strings.Repeat("x", 5000) || read("1/benchmark-0/完成") != "done" || !strings.Contains(got.out, "1/benchmark-0/a/x.json, 5.0 kB\n") {
		t.Errorf("not all was fetched: %s", got)
	}
	again := runPiped(t, p.Addr(), "artifacts", "get", "r", "--to", dir, "-o", "json")
	want := `"path": "` + dir + `/1/benchmark-0/a/x.json",
      "already": true,
      "name": "1/benchmark-0/a/x.json",
      "size": 5000,`
	if again.code != 0 || !strings.Contains(again.out, want) {
		t.Errorf("the same again: %s, want %s", again, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "1/benchmark-0/完成"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, runPiped(t, p.Addr(), "artifacts", "get", "r", "--to", dir), 2, "is there already and is another file (overwrite it: --force)")
	if read("1/benchmark-0/完成") != "mine" {
		t.Error("a file was overwritten")
	}
	expect(t, runPiped(t, p.Addr(), "artifacts", "get", "r", "1/*/完成", "--to", dir, "--force", "-o", "name"), 0, "")
	if read("1/benchmark-0/完成") != "done" {
		t.Error("a file was not overwritten")
	}
}

func TestArtifactsThatAreNotWhatTheyWereAreRefused(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	p.AddArtifact(id, "1/benchmark-0/x", "good")
	p.CorruptArtifact(id, "1/benchmark-0/x", "evil")
	dir := t.TempDir()
	expect(t, runPiped(t, p.Addr(), "artifacts", "get", id, "--to", dir), 3, "arrived damaged: its sha256 is")
	expect(t, runPiped(t, p.Addr(), "artifacts", "get", id, "--to", "-"), 3, "arrived damaged: its sha256 is")
	if all, err := filepath.Glob(filepath.Join(dir, "1/benchmark-0/*")); err != nil || len(all) != 0 {
		t.Errorf("%v, %v are left", all, err)
	}
	bad := p.Add(&baiv1.Run{})
	p.AddArtifact(bad, "../../evil", "x")
	expect(t, runPiped(t, p.Addr(), "artifacts", "get", bad, "--to", dir), 3, `artifact "../../evil" is refused: it leads elsewhere`)
}

func TestEveryNameThatLinuxAllowsIsFetched(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	names := []string{"1/benchmark-0/2026-11-23T07:47:50.json", `1/benchmark-0/C:\x`, "1/benchmark-0/a\nb", "1/benchmark-0/\x1b[2J", "1/benchmark-0/\u202ez", "1/benchmark-0/" + strings.Repeat("x", 255)}
	for _, name := range names {
		p.AddArtifact(id, name, name)
	}
	dir := t.TempDir()
	got := runPiped(t, p.Addr(), "artifacts", "get", id, "--to", dir)
	expect(t, got, 0, "")
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != name {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
	if want := `"` + dir + `/1/benchmark-0/a\nb", 17 B`; !strings.Contains(got.out, want) || strings.Contains(got.out, "\x1b") {
		t.Errorf("said %q, want %s and nothing that plays with a terminal", got.out, want)
	}
	list := runPiped(t, p.Addr(), "artifacts", "list", id, "-o", "name")
	if want := `"1/benchmark-0/a\nb"` + "\n"; !strings.Contains(list.out, want) {
		t.Errorf("listed %q, want %s", list.out, want)
	}
	one := runPiped(t, p.Addr(), "artifacts", "get", id, `"1/benchmark-0/a\nb"`, "--to", "-")
	if one.code != 0 || one.out != "1/benchmark-0/a\nb" {
		t.Errorf("by the name that was listed: %s", one)
	}
}

func TestAFileThatCannotBeFetchedStopsNoOther(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	for _, name := range []string{"1/benchmark-0/a", "1/benchmark-0/b", "1/benchmark-0/c", "1/benchmark-0/d"} {
		p.AddArtifact(id, name, name)
	}
	p.AddArtifact(id, "../../evil", "x")
	p.CorruptArtifact(id, "1/benchmark-0/a", "evil")
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "1/benchmark-0/c"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := runPiped(t, p.Addr(), "artifacts", "get", id, "--to", dir)
	expect(t, got, 3, "baictl: 3 of 5 files were not fetched")
	for _, want := range []string{`artifact "../../evil" is refused: it leads elsewhere`, `artifact "1/benchmark-0/a" arrived damaged`, "1/benchmark-0/c is there already"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	for _, name := range []string{"1/benchmark-0/b", "1/benchmark-0/d"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != name {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
}
