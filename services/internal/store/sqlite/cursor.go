package sqlite

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/store/cursor"
)

// position is the position of a reader in one source: after the sample of that sequence number, sub and name, or after the line of that
// sequence number.
type position struct {
	Seq  int64
	Sub  int64
	Name string
}

// before reports whether p comes before q.
func (p position) before(q position) bool {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Sub, q.Sub), cmp.Compare(p.Name, q.Name)) < 0
}

// positions are the positions of a reader in each source, by number. A source without a position is read from its start.
type positions map[int64]position

// at returns the place in a source.
func (p positions) at(s streamRow) position {
	if at, ok := p[s.n]; ok {
		return at
	}
	return position{Seq: -1}
}

// encode encodes p so that decode accepts it for the same query only.
func (p positions) encode(query string) string {
	var b []byte
	for _, n := range slices.Sorted(maps.Keys(p)) {
		b = binary.AppendVarint(b, n)
		b = binary.AppendVarint(b, p[n].Seq)
		b = binary.AppendVarint(b, p[n].Sub)
		b = binary.AppendUvarint(b, uint64(len(p[n].Name)))
		b = append(b, p[n].Name...)
	}
	return cursor.Encode(query, b)
}

func decode(query, text string) (positions, error) {
	p := make(positions)
	if text == "" {
		return p, nil
	}
	b, err := cursor.Decode(query, text)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		var n int64
		var at position
		var size int
		n, b = cursor.ReadVarint(b)
		at.Seq, b = cursor.ReadVarint(b)
		at.Sub, b = cursor.ReadVarint(b)
		size, b = cursor.ReadLength(b)
		at.Name, b = string(b[:size]), b[size:]
		p[n] = at
	}
	return p, nil
}

// cursorScope returns the scope of a cursor: a method, a file and a query.
func (s *Store) cursorScope(verb string, query any) (string, error) {
	b, err := json.Marshal([]any{s.id, verb, query})
	return string(b), err
}
