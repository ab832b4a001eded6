package elastic

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

// termOf returns the term by which text is searched: text itself, or a digest if it is long.
func termOf(text string) string {
	if len(text) <= schema.MaxTerm {
		return text
	}
	return "sha256:" + digest(text)
}

// digest returns a digest of texts, in 43 characters.
func digest(parts ...string) string {
	h := sha256.New()
	var n []byte
	for _, p := range parts {
		n = strconv.AppendInt(n[:0], int64(len(p)), 10)
		h.Write(append(n, ':'))
		h.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// docID returns the ID of a small document.
func docID(kind store.Kind, key string) string { return digest(string(kind), key) }

// runID returns the ID of a run's document.
func runID(run string) string {
	if len(run) <= 256 && safe(run) {
		return run
	}
	return digest(run)
}

// safe reports whether text can be part of an ID unchanged.
func safe(text string) bool {
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return text != "" && text[0] != '_' && text[0] != '-'
}

// preference returns the text by which the server uses the same copy of each shard for all requests about one run. Copies show a write at
// different times, so that a reader of several copies could see less than before.
func preference(run string) string { return "run-" + runID(run) }

// partition returns the month in which a run was submitted, according to its ID. Runs whose IDs have no time share one partition.
func partition(run string) string {
	id, err := ulid.ParseStrict(run)
	if err != nil || run != strings.ToLower(run) {
		return "other"
	}
	return ulid.Time(id.Time()).UTC().Format("2006.01")
}

// sortKeyBits is how many bits of a place are of the sequence.
const sortKeyBits = 40

// sortKey returns the position of a sequence number among those of all sources: those of one source are adjacent, in order as far as the
// bits go.
func sortKey(source string, seq int64) int64 {
	h, err := strconv.ParseUint(source[:min(len(source), 16)], 16, 64)
	if err != nil {
		h = 0 // no source of the platform: found by its ID alone
	}
	return int64(h>>(64-63+sortKeyBits))<<sortKeyBits | min(seq, 1<<sortKeyBits-1) //nolint:gosec // 23 bits
}

// lastSortKey is the place after all of a source.
func lastSortKey(source string) int64 { return sortKey(source, math.MaxInt64) }

// shortID returns a source's ID in fewer characters.
func shortID(source string) string {
	b, err := hex.DecodeString(source)
	if err != nil {
		return source
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// nanos returns t as a number that orders times, also those outside the range of runs.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// timestamp returns a time in the form of date_nanos, the nearest that it can hold.
func timestamp(ns int64) string {
	return time.Unix(0, max(ns, 0)).UTC().Format(time.RFC3339Nano)
}

// truncateTerm returns the first bytes of text, without cutting a character.
func truncateTerm(text string) string {
	if len(text) <= schema.MaxTerm {
		return text
	}
	n := schema.MaxTerm
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// searchable returns the labels that the server can search, and whether these are all.
func searchable(labels map[string]string) (clean map[string]string, whole bool) {
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
