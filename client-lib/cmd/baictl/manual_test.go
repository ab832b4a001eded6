package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// allCommands, in golden_test.go, has the command lines whose output is held.
func TestEveryVerbHasOutputThatIsHeld(t *testing.T) {
	dir := t.TempDir()
	if got := runPiped(t, "", "manual", "man", dir); got.code != 0 {
		t.Fatal(got)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "baictl-*.1"))
	if err != nil {
		t.Fatal(err)
	}
	words := func(text string) string { return strings.ReplaceAll(text, "-", " ") + " " }
	lines := slices.Collect(maps.Values(allCommands()))
	for _, page := range pages {
		verb := words(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(page), ".1"), "baictl-"))
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(words(line), verb) }) {
			t.Errorf("golden_test.go has no command line of %q: add one to formattedCommands, or to the list of its group", verb)
		}
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
