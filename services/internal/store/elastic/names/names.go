// Package names makes the names of documents, and the terms and numbers by which they are found. It is pure.
package names

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// Term returns the term by which text is searched: text itself, or a digest if it is long.
func Term(text string) string {
	if len(text) <= schema.MaxTerm {
		return text
	}
	return "sha256:" + Digest(text)
}

// Digest returns a digest of texts, in 43 characters.
func Digest(parts ...string) string {
	h := sha256.New()
	var n []byte
	for _, p := range parts {
		n = strconv.AppendInt(n[:0], int64(len(p)), 10)
		h.Write(append(n, ':'))
		h.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Doc returns the ID of a small document.
func Doc(kind store.Kind, key string) string { return Digest(string(kind), key) }

// Run returns the ID of a run's document.
func Run(run string) string {
	if len(run) <= 256 && Safe(run) {
		return run
	}
	return Digest(run)
}

// Safe reports whether text can be part of an ID unchanged.
func Safe(text string) bool {
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return text != "" && text[0] != '_' && text[0] != '-'
}

// Preference returns the text by which the server uses the same copy of each shard for all requests about one run. Copies show a write at
// different times, so that a reader of several copies could see less than before.
func Preference(run string) string { return "run-" + Run(run) }

// Partition returns the month in which a run was submitted, according to its ID. Runs whose IDs have no time share one partition.
func Partition(run string) string {
	id, err := ulid.ParseStrict(run)
	if err != nil || run != strings.ToLower(run) {
		return "other"
	}
	return ulid.Time(id.Time()).UTC().Format("2006.01")
}

// sortKeyBits is how many bits of a place are of the sequence.
const sortKeyBits = 40

// SortKey returns the position of a sequence number among those of all sources: those of one source are adjacent, in order as far as the
// bits go.
func SortKey(source string, seq int64) int64 {
	h, err := strconv.ParseUint(source[:min(len(source), 16)], 16, 64)
	if err != nil {
		h = 0 // no source of the platform: found by its ID alone
	}
	return int64(h>>(64-63+sortKeyBits))<<sortKeyBits | min(seq, 1<<sortKeyBits-1) //nolint:gosec // 23 bits
}

// LastSortKey is the place after all of a source.
func LastSortKey(source string) int64 { return SortKey(source, math.MaxInt64) }

// ShortID returns a source's ID in fewer characters.
func ShortID(source string) string {
	b, err := hex.DecodeString(source)
	if err != nil {
		return source
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Nanos returns t as a number that orders times, also those outside the range of runs.
func Nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// Timestamp returns a time in the form of date_nanos, the nearest that it can hold.
func Timestamp(ns int64) string {
	return time.Unix(0, max(ns, 0)).UTC().Format(time.RFC3339Nano)
}

// TruncateTerm returns the first bytes of text, without cutting a character.
func TruncateTerm(text string) string {
	if len(text) <= schema.MaxTerm {
		return text
	}
	n := schema.MaxTerm
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Searchable returns the labels that the server can search, and whether these are all.
func Searchable(labels map[string]string) (clean map[string]string, whole bool) {
	odd := 0
	for k, v := range labels {
		if !plain(k) || !plain(v) {
			odd++
		}
	}
	if odd == 0 {
		return labels, true
	}
	clean = make(map[string]string, len(labels))
	for k, v := range labels {
		if plain(k) && plain(v) {
			clean[k] = v
		}
	}
	return clean, false
}

// plain reports whether a key or value of a label can be searched.
func plain(text string) bool { return len(text) <= schema.MaxTerm && strings.IndexByte(text, 0) < 0 }
