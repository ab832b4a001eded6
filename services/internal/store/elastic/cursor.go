package elastic

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
)

// position is the position of a reader in one source: after the sample of that sequence number, sub and name, or after the line of that
// sequence number.
type position struct {
	seq  int64
	sub  int64
	name string
}

// positions are the positions of a reader in each source. A source without a position is read from its start.
type positions map[uint64]position

// streamHash returns the hash that identifies a source in its run.
func streamHash(source string) uint64 {
	n, err := strconv.ParseUint(source[:min(len(source), 16)], 16, 64)
	if err == nil {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(source))
	return h.Sum64()
}

// at returns the spot in a source.
func (p positions) at(source string) position {
	if at, ok := p[streamHash(source)]; ok {
		return at
	}
	return position{seq: -1}
}

// encode encodes p so that decode accepts it for the same query only.
func (p positions) encode(query string) string {
	var b []byte
	for _, n := range slices.Sorted(maps.Keys(p)) {
		b = binary.BigEndian.AppendUint64(b, n)
		b = binary.AppendVarint(b, p[n].seq)
		b = binary.AppendVarint(b, p[n].sub)
		b = binary.AppendUvarint(b, uint64(len(p[n].name)))
		b = append(b, p[n].name...)
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
	for len(b) >= 8 {
		var at position
		n := binary.BigEndian.Uint64(b)
		at.seq, b = cursor.ReadVarint(b[8:])
		at.sub, b = cursor.ReadVarint(b)
		size, rest := cursor.ReadLength(b)
		at.name, b = string(rest[:size]), rest[size:]
		p[n] = at
	}
	return p, nil
}

// cursorScope names the only use of a cursor: a store, a verb and a query.
func cursorScope(prefix, verb string, query any) (string, error) {
	b, err := json.Marshal([]any{prefix, verb, query})
	return string(b), err
}

// decodeCursor returns the scope of the cursors of a query, and the positions of this one.
func (s *streamStore) decodeCursor(verb string, query any, cursor string, limit int) (string, positions, error) {
	if err := positive(limit); err != nil {
		return "", nil, err
	}
	purpose, err := cursorScope(s.client.Settings.Prefix, verb, query)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w: %w", verb, store.ErrRefused, err)
	}
	at, err := decode(purpose, cursor)
	return purpose, at, err
}
