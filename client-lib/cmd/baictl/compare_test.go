package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readOptional returns the text of a file, which is empty where there is none.
func readOptional(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// namesAFile is the remedy for what compare cannot read.
const namesAFile = " (name a file with results, or - for standard input)"

func TestCompareIsBenchstatByteForByte(t *testing.T) {
	t.Parallel()
	calls, err := filepath.Glob(filepath.Join("..", "..", "internal", "benchstat", "testdata", "*", "args"))
	if err != nil || len(calls) == 0 {
		t.Fatalf("no calls of benchstat: %v", err)
	}
	for _, call := range calls {
		folder := filepath.Dir(call)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			args := append([]string{"compare", "-o", "benchstat", "--"}, strings.Split(strings.TrimSuffix(readOptional(t, call), "\n"), "\n")...)
			cmd := command(t, "", args...)
			cmd.Dir = folder
			got := finish(t, cmd)
			want := result{out: readOptional(t, folder, "stdout"), err: readOptional(t, folder, "stderr")}
			if before, missing, failed := strings.Cut(want.err, "benchstat: open "); failed {
				want.code = 2
				want.err = before + "baictl: read " + strings.TrimSpace(missing) + namesAFile + "\n"
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestCompareReadsStandardInput(t *testing.T) {
	t.Parallel()
	text := readOptional(t, "testdata", "bench-new.txt")
	want := runPiped(t, "", "compare", "-o", "benchstat", "bench-old.txt", "now=bench-new.txt")
	labelled := command(t, "", "compare", "-o", "benchstat", "bench-old.txt", "now=-")
	labelled.Stdin = strings.NewReader(text)
	if got := finish(t, labelled); got != want || got.code != 0 || !strings.Contains(got.out, "│ ") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	bare := command(t, "", "compare", "-o", "benchstat", "-", "bench-old.txt")
	bare.Stdin = strings.NewReader("BenchmarkA 1\n" + text)
	got := finish(t, bare)
	if got.code != 0 || !strings.Contains(got.out, "│      -      │") || got.err != "-:1: missing measurements\n" {
		t.Error(got)
	}
}

func TestCompareSaysWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	long := "goos: linux\n" + strings.Repeat("x", 1<<16)
	path := filepath.Join(t.TempDir(), "long.txt")
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	const says = ":2: the line is too long, 64 KiB or more" + namesAFile
	expect(t, runPiped(t, "", "compare", "-o", "benchstat", "bench-old.txt", "new="+path), 2, path+says)
	piped := command(t, "", "compare", "-o", "benchstat", "bench-old.txt", "-")
	piped.Stdin = strings.NewReader(long)
	expect(t, finish(t, piped), 2, "standard input"+says)

	folder, err := os.Open("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }() // it was only read
	piped = command(t, "", "compare", "-o", "benchstat", "-")
	piped.Stdin = folder
	expect(t, finish(t, piped), 2, "read standard input: is a directory"+namesAFile)
}

func TestAFolderTakesNotThePlaceOfARun(t *testing.T) {
	t.Parallel()
	p, old, now := startWithTwoRuns(t, succeeds, 0.9)
	base, other := "baseline:"+old, "nightly"
	p.SetComparison(rateComparison(base, other, 100, 90))
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, other), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{base, "task:" + now} { // of a program that writes a file for each side
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{
		base + " " + other:                "rate (MB/s)",
		"task:" + now + " " + other:       "rate (MB/s)",
		"old=nowhere.txt new=nowhere.txt": "read nowhere.txt: no such file or directory" + namesAFile,
	} {
		cmd := command(t, p.Addr(), append([]string{"compare"}, strings.Fields(args)...)...)
		cmd.Dir = folder
		if got := finish(t, cmd); !strings.Contains(got.out+got.err, want) {
			t.Errorf("%s: want %s, got\n%v", args, want, got)
		}
	}
}
