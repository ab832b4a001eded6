package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileOfWindowsAndStandardInputHaveTheSameChanges(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want := runPiped(t, "", "changes", "--input", "results.csv", "--method", "otava", "-o", "jsonl")
	windows := filepath.Join(t.TempDir(), "windows.csv")
	if err := os.WriteFile(windows, []byte("\ufeff"+strings.ReplaceAll(string(text), "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runPiped(t, "", "changes", "--input", windows, "--method", "otava", "-o", "jsonl"); got != want || got.code != 0 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	piped := command(t, "", "changes", "--input", "-", "--method", "otava", "-o", "jsonl")
	piped.Stdin = strings.NewReader(string(text))
	if got := finish(t, piped); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAFileOfAHeaderAloneHasNoSeries(t *testing.T) {
	for args, want := range map[string]string{
		"-o json":        "{\n  \"method\": \"segments/2\",\n  \"series\": []\n}\n",
		"-o jsonl":       "",
		"--replay":       "0 series, 0 rows, 0 changes\n",
		"-o name --fail": "",
	} {
		cmd := command(t, "", append([]string{"changes", "--input", "-"}, strings.Fields(args)...)...)
		cmd.Stdin = strings.NewReader("series,time,value\r\n")
		if got := finish(t, cmd); got.code != 0 || got.out != want {
			t.Errorf("%s: %s", args, got)
		}
	}
}

func TestOnlyFailMakesARegressionAnExitCode(t *testing.T) {
	for args, code := range map[string]int{"": 0, "--replay": 0, "--fail": 6, "--fail --replay": 6, "--fail -o json": 6, "--fail --min-magnitude 0.5": 0} {
		got := runPiped(t, "", append(strings.Fields("changes --input results.csv --method otava"), strings.Fields(args)...)...)
		says := ""
		if code != 0 {
			says = "results.csv has 2 regressions in 2 of 4 series"
		}
		expect(t, got, code, says)
	}
}
