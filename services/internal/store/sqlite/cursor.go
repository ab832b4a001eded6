package sqlite

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/store/cursor"
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
	return cursor.Seal(query, b)
}

func decode(query, text string) (places, error) {
	p := make(places)
	if text == "" {
		return p, nil
	}
	b, err := cursor.Unseal(query, text)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		var n int64
		var at place
		var size int
		n, b = cursor.Varint(b)
		at.Seq, b = cursor.Varint(b)
		at.Sub, b = cursor.Varint(b)
		size, b = cursor.Length(b)
		at.Name, b = string(b[:size]), b[size:]
		p[n] = at
	}
	return p, nil
}

// purpose is what a cursor is for: a verb, a file and a query.
func (s *Store) purpose(verb string, query any) (string, error) {
	b, err := json.Marshal([]any{s.id, verb, query})
	return string(b), err
}
