// Package chunk is the format in which a file of package sqlite stores samples.
package chunk

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Samples lie in chunks: a row for each would cost more than all work on a sample
// before. A chunk holds samples of one source in ascending order of
// (Seq, Sub, Name), and no two chunks of a source overlap.
//
// The form of a chunk, numbers as of encoding/binary's varints:
//
//	version   one byte, formatVersion
//	texts     their count, then each as its length and its bytes
//	samples   their count, then each as
//	          flags          one byte
//	          sequence       less that of the sample before
//	          sub            where flagSub is set
//	          name           number of a text
//	          unit           number of a text, where flagUnit is set
//	          labels         number of a text: JSON, where flagLabels is set
//	          value          float64, 8 bytes, little-endian; NaN and infinities as IEEE 754 has them
//	          time           less that of the sample before
//	          step           where flagStep is set
const formatVersion = 1

// MaxLen is the greatest number of samples of a chunk.
const MaxLen = 4096

// Bits of a sample's flags in a chunk.
const (
	flagSub = 1 << iota
	flagUnit
	flagLabels
	flagStep
	flagHigher // of the direction; versions without these two bits ignore them
	flagLower
)

// ErrDamaged means that bytes are no valid chunk.
var ErrDamaged = errors.New("a chunk of samples is damaged")

// compare orders samples as they lie in a source.
func compare(a, b *event.Sample) int {
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Name, b.Name))
}

// Pack returns the chunk of samples.
func Pack(samples Series) ([]byte, error) {
	n := samples.Count()
	p := packer{table: stringTable{numbers: make(map[string]uint64)}}
	p.body = binary.AppendUvarint(make([]byte, 0, 24*n+16), uint64(n)) //nolint:gosec // a count
	for _, piece := range samples {
		for i := range piece {
			if err := p.add(&piece[i]); err != nil {
				return nil, err
			}
		}
	}
	return append(p.table.head(), p.body...), nil
}

// packer makes a chunk.
type packer struct {
	table     stringTable
	labels    labelCache
	body      []byte
	seq, time int64 // of the sample before
}

func (p *packer) add(s *event.Sample) error {
	labels, err := p.labels.text(s.Labels)
	if err != nil {
		return err
	}
	b := binary.AppendVarint(append(p.body, flagsOf(s)), s.Seq-p.seq)
	if s.Sub != 0 {
		b = binary.AppendVarint(b, int64(s.Sub))
	}
	b = binary.AppendUvarint(b, p.table.number(s.Name))
	if s.Unit != "" {
		b = binary.AppendUvarint(b, p.table.number(s.Unit))
	}
	if labels != "" {
		b = binary.AppendUvarint(b, p.table.number(labels))
	}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.Float()))
	b = binary.AppendVarint(b, s.Time-p.time)
	if s.Step != nil {
		b = binary.AppendVarint(b, *s.Step)
	}
	p.body, p.seq, p.time = b, s.Seq, s.Time
	return nil
}

func flagsOf(s *event.Sample) (flags byte) {
	if s.Sub != 0 {
		flags |= flagSub
	}
	if s.Unit != "" {
		flags |= flagUnit
	}
	if len(s.Labels) > 0 {
		flags |= flagLabels
	}
	if s.Step != nil {
		flags |= flagStep
	}
	switch s.Direction {
	case event.Higher:
		flags |= flagHigher
	case event.Lower:
		flags |= flagLower
	}
	return flags
}

// labelCache are those of the sample before: most samples have the same.
type labelCache struct {
	last map[string]string
	json string
}

// text returns m as JSON, empty if there are no labels.
func (l *labelCache) text(m map[string]string) (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	if maps.Equal(m, l.last) {
		return l.json, nil
	}
	b, err := json.Marshal(m) // sorted by key
	l.last, l.json = m, string(b)
	return l.json, err
}

// stringTable numbers texts, few of which differ.
type stringTable struct {
	numbers map[string]uint64
	texts   []string
	last    uint64 // number of the last call
}

func (t *stringTable) number(text string) uint64 {
	if t.last < uint64(len(t.texts)) && t.texts[t.last] == text {
		return t.last
	}
	n, ok := t.numbers[text]
	if !ok {
		n = uint64(len(t.texts))
		t.numbers[text], t.texts = n, append(t.texts, text)
	}
	t.last = n
	return n
}

func (t *stringTable) head() []byte {
	b := binary.AppendUvarint([]byte{formatVersion}, uint64(len(t.texts)))
	for _, text := range t.texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// Unpack returns the samples of a chunk.
func Unpack(chunk []byte) ([]event.Sample, error) {
	if len(chunk) == 0 || chunk[0] != formatVersion {
		return nil, ErrDamaged
	}
	u := unpacker{rest: chunk[1:], labels: make(map[uint64]map[string]string)}
	u.readTexts()
	n := u.count(12) // a sample has 12 bytes at least
	samples, values := make([]event.Sample, n), make([]float64, n)
	var seq, time int64
	for i := range samples {
		u.sample(&samples[i], &values[i], &seq, &time)
	}
	if u.damaged || len(u.rest) > 0 {
		return nil, ErrDamaged
	}
	return samples, nil
}

// unpacker reads the parts of a chunk. After the first damaged part it reads zeroes.
type unpacker struct {
	rest    []byte
	texts   []string
	labels  map[uint64]map[string]string // that were read before
	damaged bool
}

func (u *unpacker) sample(s *event.Sample, value *float64, seq, time *int64) {
	flags := u.byte()
	*seq += u.signed()
	s.Seq = *seq
	if flags&flagSub != 0 {
		s.Sub = int(u.signed())
	}
	s.Name = u.text(u.unsigned())
	if flags&flagUnit != 0 {
		s.Unit = u.text(u.unsigned())
	}
	if flags&flagLabels != 0 {
		s.Labels = u.labelsAt(u.unsigned())
	}
	*value = u.float()
	if math.IsNaN(*value) || math.IsInf(*value, 0) {
		s.Set(*value)
	} else {
		s.Value = value
	}
	*time += u.signed()
	s.Time = *time
	if flags&flagStep != 0 {
		step := u.signed()
		s.Step = &step
	}
	s.Direction = directionOf(flags)
}

func directionOf(flags byte) string {
	switch {
	case flags&flagHigher != 0:
		return event.Higher
	case flags&flagLower != 0:
		return event.Lower
	}
	return ""
}

func (u *unpacker) fail() { u.rest, u.damaged = nil, true }

// count reads the number of the following items, which have least bytes each at least.
func (u *unpacker) count(least uint64) uint64 {
	n := u.unsigned()
	if n > uint64(len(u.rest))/least {
		u.fail()
		return 0
	}
	return n
}

func (u *unpacker) readTexts() {
	u.texts = make([]string, u.count(1))
	for i := range u.texts {
		n := u.count(1)
		u.texts[i] = string(u.rest[:n])
		u.rest = u.rest[n:]
	}
}

func (u *unpacker) text(n uint64) string {
	if n >= uint64(len(u.texts)) {
		u.fail()
		return ""
	}
	return u.texts[n]
}

// labelsAt returns the labels in a text: one map for all samples that have them.
func (u *unpacker) labelsAt(n uint64) map[string]string {
	if m, ok := u.labels[n]; ok {
		return m
	}
	m := make(map[string]string)
	if text := u.text(n); !u.damaged && json.Unmarshal([]byte(text), &m) != nil {
		u.fail()
	}
	u.labels[n] = m
	return m
}

func (u *unpacker) byte() byte {
	if len(u.rest) == 0 {
		u.fail()
		return 0
	}
	b := u.rest[0]
	u.rest = u.rest[1:]
	return b
}

func (u *unpacker) signed() int64 {
	v, n := binary.Varint(u.rest)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

func (u *unpacker) unsigned() uint64 {
	v, n := binary.Uvarint(u.rest)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

func (u *unpacker) float() float64 {
	if len(u.rest) < 8 {
		u.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(u.rest))
	u.rest = u.rest[8:]
	return v
}

// Merge returns the samples of both, each once: of two with the same key that of old stays. Both are in order, and so is the result.
func Merge(old, young []event.Sample) []event.Sample {
	if len(old) == 0 {
		return young
	}
	all := make([]event.Sample, 0, len(old)+len(young))
	for len(old) > 0 && len(young) > 0 {
		switch order := compare(&old[0], &young[0]); {
		case order < 0:
			all, old = append(all, old[0]), old[1:]
		case order > 0:
			all, young = append(all, young[0]), young[1:]
		default:
			young = young[1:]
		}
	}
	return append(append(all, old...), young...)
}

// ordered returns samples in order and each once, the first of those with the same key. Samples that are in order already are returned
// unchanged.
func ordered(samples []event.Sample) []event.Sample {
	for i := 1; i < len(samples); i++ {
		if compare(&samples[i-1], &samples[i]) >= 0 {
			samples = slices.Clone(samples)
			slices.SortStableFunc(samples, func(a, b event.Sample) int { return compare(&a, &b) })
			return slices.CompactFunc(samples, func(a, b event.Sample) bool { return compare(&a, &b) == 0 })
		}
	}
	return samples
}
