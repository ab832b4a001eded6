package sqlite

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// place is where a reader is in one source: after the sample of that sequence,
// sub and name, or after the line of that sequence.
type place struct {
	Seq  int64
	Sub  int64
	Name string
}

// before says whether p comes before q.
func (p place) before(q place) bool {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Sub, q.Sub), cmp.Compare(p.Name, q.Name)) < 0
}

// places is where a reader is in each source, by number. A source that it lacks
// is read from its start.
type places map[int64]place

// in returns the place in a source.
func (p places) in(s source) place {
	if at, ok := p[s.n]; ok {
		return at
	}
	return place{Seq: -1}
}

// encode writes p so that decode takes it back for the same query only.
func (p places) encode(query string) string {
	var b []byte
	for _, n := range slices.Sorted(maps.Keys(p)) {
		b = binary.AppendVarint(b, n)
		b = binary.AppendVarint(b, p[n].Seq)
		b = binary.AppendVarint(b, p[n].Sub)
		b = binary.AppendUvarint(b, uint64(len(p[n].Name)))
		b = append(b, p[n].Name...)
	}
	return seal(query, b)
}

func decode(query, cursor string) (places, error) {
	p := make(places)
	if cursor == "" {
		return p, nil
	}
	b, err := unseal(query, cursor)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		var n int64
		var at place
		var size int
		n, b = varint(b)
		at.Seq, b = varint(b)
		at.Sub, b = varint(b)
		size, b = length(b)
		at.Name, b = string(b[:size]), b[size:]
		p[n] = at
	}
	return p, nil
}

func varint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[max(n, 0):]
}

func length(b []byte) (int, []byte) {
	v, n := binary.Uvarint(b)
	b = b[max(n, 0):]
	return int(min(v, uint64(len(b)))), b //nolint:gosec // at most len(b)
}

// seal makes opaque text of b, with a sum over it and what it is for.
func seal(query string, b []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(sum(query, b), b...))
}

// unseal returns what seal was given, or says store.ErrCursor for what it never
// returned for this query.
func unseal(query, cursor string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 8 || string(sum(query, b[8:])) != string(b[:8]) {
		return nil, fmt.Errorf("cursor %.40q: %w", cursor, store.ErrCursor)
	}
	return b[8:], nil
}

func sum(query string, b []byte) []byte {
	h := fnv.New64a()
	h.Write([]byte(query))
	h.Write(b)
	return h.Sum(nil)
}

// purpose is what a cursor is for: a verb, a file and a query.
func (s *Store) purpose(verb string, query any) (string, error) {
	b, err := json.Marshal([]any{s.id, verb, query})
	return string(b), err
}
