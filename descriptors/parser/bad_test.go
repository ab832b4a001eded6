package parser_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Each file under testdata/bad has a golden file with its faults, one on a line,
// each with its code.
func TestEveryBadFileHasItsFaultsAndNoOthers(t *testing.T) {
	for name, text := range files(t, "testdata/bad/*.toml") {
		t.Run(name, func(t *testing.T) {
			d, faults := parser.Parse(filepath.Base(name), text)
			if (d == nil) != (len(faults.Errors()) > 0) {
				t.Errorf("a descriptor and errors, or neither")
			}
			var got strings.Builder
			for _, f := range faults {
				got.WriteString(f.Code + " " + f.String() + "\n")
			}
			if diff := cmp.Diff(golden(t, strings.TrimSuffix(name, ".toml")+".golden", got.String()), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// golden is the text of a golden file, which becomes got where GOLDEN is write.
func golden(t *testing.T, name, got string) string {
	t.Helper()
	if os.Getenv("GOLDEN") == "write" {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(want)
}

func TestEveryCodeIsThatOfABadFile(t *testing.T) {
	seen := map[string]bool{
		"BAI0004": true, // too large to be kept in a folder
		"BAI0008": true, // of overrides, not of files
		"BAI0029": true, // of a platform's settings, not of files
		"BAI0037": true, // of a platform's settings, not of files
		"BAI0038": true, // likewise
		"BAI0046": true, // likewise
		"BAI0048": true, // likewise
		"BAI0049": true, // likewise
		"BAI0130": true, // likewise
		"BAI0150": true, // of suites, not of descriptors
		"BAI0151": true, // likewise
		"BAI0152": true, // likewise
		"BAI0153": true, // likewise
		"BAI0160": true, // likewise
		"BAI0161": true, // likewise
		"BAI0162": true, // likewise
		"BAI0221": true, // of a platform's settings, not of files
		"BAI0224": true, // likewise
		"BAI0198": true, // of a platform's settings, not of files
	}
	for name, text := range files(t, "testdata/bad/*.toml") {
		_, faults := parser.Parse(name, text)
		for _, f := range faults {
			seen[f.Code] = true
		}
	}
	for _, code := range parser.Codes() {
		if !seen[code] {
			t.Errorf("no file has %s", code)
		}
	}
}

func TestAFileIsAsLargeAsTheLimitAndNoLarger(t *testing.T) {
	full := append([]byte(minimal(nil)), bytes.Repeat([]byte("#"), parser.MaxSize)...)[:parser.MaxSize]
	if d, faults := parser.Parse("f.toml", full); d == nil {
		t.Errorf("at the limit: %v", faults)
	}
	for name, size := range map[string]int{"a byte more": parser.MaxSize + 1, "10 MB": 10_000_000} {
		t.Run(name, func(t *testing.T) {
			_, faults := parser.Parse("f.toml", bytes.Repeat([]byte("#"), size))
			if len(faults) != 1 || faults[0].Code != "BAI0004" || faults[0].Line != 1 {
				t.Errorf("%v", faults)
			}
		})
	}
}
