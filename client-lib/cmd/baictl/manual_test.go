package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
)

func TestTheManualIsCurrent(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "baictl.md"))
	if err != nil {
		t.Fatal(err)
	}
	got := runPiped(t, "", "manual", "markdown")
	if got.code != 0 || got.out != string(want) {
		t.Error("docs/baictl.md is not what the commands say: run `cd client-lib && go run ./cmd/baictl manual markdown ../docs`")
	}
}

func TestEveryVerbHasAManPage(t *testing.T) {
	dir := t.TempDir()
	if got := runPiped(t, "", "manual", "man", dir); got.code != 0 {
		t.Fatal(got)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 30 {
		t.Errorf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		checkPage(t, strings.TrimSuffix(filepath.Base(page), ".1"), string(text))
	}
}

// checkPage checks that roff understands a man page.
func checkPage(t *testing.T, name, text string) {
	t.Helper()
	for _, part := range []string{".TH \"" + strings.ToUpper(name) + "\" \"1\"", "\n.SH NAME\n" + strings.ReplaceAll(name, "-", `\-`) + ` \- `, "\n.SH SYNOPSIS\n", "\n.SH SEE ALSO\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is missing", name, part)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".SH ") && !strings.HasPrefix(line, ".T") && !strings.HasPrefix(line, ".B ") && line != ".nf\n" && line != ".fi\n" {
			t.Errorf("%s: a line that roff takes for a request: %q", name, line)
		}
	}
}

func TestHelpFitsIntoATerminalOf80Columns(t *testing.T) {
	dir := t.TempDir()
	if got := runPiped(t, "", "manual", "man", dir); got.code != 0 {
		t.Fatal(got)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".1")
		verb := append(strings.SplitN(strings.TrimPrefix(strings.TrimPrefix(name, "baictl"), "-"), "-", 2), "--help")
		got := runPiped(t, "", strings.Fields(strings.Join(verb, " "))...)
		for line := range strings.Lines(got.out) {
			if printer.Width(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: %d cells: %s", name, printer.Width(line), line)
			}
		}
		if got.code != 0 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
