package main_test

import (
	"strings"
	"testing"
)

func TestParquetGoesToAPipe(t *testing.T) {
	p := newFixture(t, newYear)
	addGrid(p, newYear)
	got := finish(t, command(t, p.Addr(), "set", "results", gridID, "-o", "parquet"))
	if got.code != 0 || !strings.HasPrefix(got.out, "PAR1") || !strings.HasSuffix(got.out, "PAR1") {
		t.Errorf("exit %d, %d bytes: %s", got.code, len(got.out), got.err)
	}
}

func TestParquetIsRefusedOnATerminal(t *testing.T) {
	p := newFixture(t, newYear)
	s := open(t, command(t, p.Addr(), "set", "results", "sizes", "-o", "parquet"), 80)
	if code := s.end(); code != 2 || !strings.Contains(s.screen(), "-o parquet writes no text") {
		t.Errorf("exit %d:\n%s", code, s.screen())
	}
}
