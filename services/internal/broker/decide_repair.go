package broker

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Sizes in the broker's files.
const (
	entryHead  = 10 // of an entry of a journal: length, checksum, version
	batchHead  = 61 // of a batch of records without its records
	indexEntry = 15 // of a batch in an index
	maxBatch   = 1 << 30
)

// sum returns the checksum that the broker's files have.
func sum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// wholeEntries returns how many bytes at the beginning of a journal are whole entries. The broker reads no further: entries that it writes
// behind them would be lost.
func wholeEntries(journal []byte) int {
	at := 0
	for at+entryHead <= len(journal) {
		length := int(binary.LittleEndian.Uint32(journal[at:]))
		end := at + 8 + length
		if length < 2 || end > len(journal) || sum(journal[at+8:end]) != binary.LittleEndian.Uint32(journal[at+4:]) {
			break
		}
		at = end
	}
	return at
}

// batch is one batch of records in a segment.
type batch struct {
	from, to int   // bytes of the segment
	first    int64 // offset of its first record
	next     int64 // offset behind its last record
	epoch    uint32
}

// batches returns the whole batches of a segment with growing offsets, in order. It skips other bytes up to the next batch.
func batches(segment []byte) []batch {
	var all []batch
	for at, next := 0, int64(0); at+batchHead <= len(segment); {
		b, ok := readBatch(segment, at)
		if !ok || b.first < next {
			at++
			continue
		}
		all = append(all, b)
		at, next = b.to, b.next
	}
	return all
}

// readBatch returns the batch that begins at a byte of a segment. It is false if there is none.
func readBatch(segment []byte, at int) (batch, bool) {
	head := segment[at:]
	const magic, two = 16, 2 // the format of batches, since Kafka 0.11
	length := int64(binary.BigEndian.Uint32(head[8:]))
	if head[magic] != two || length < batchHead-12 || length > maxBatch || int64(len(head)) < 12+length {
		return batch{}, false
	}
	head = head[:12+length]
	if sum(head[21:]) != binary.BigEndian.Uint32(head[17:]) {
		return batch{}, false
	}
	first, delta := int64(binary.BigEndian.Uint64(head)), int64(binary.BigEndian.Uint32(head[23:])) //nolint:gosec // they are checked below
	if first < 0 || delta < 0 || first+delta < first {
		return batch{}, false
	}
	return batch{from: at, to: at + len(head), first: first, next: first + delta + 1, epoch: binary.BigEndian.Uint32(head[12:])}, true
}

// joinBatches returns the bytes of batches, one behind the other.
func joinBatches(segment []byte, all []batch) []byte {
	var out []byte
	for _, b := range all {
		out = append(out, segment[b.from:b.to]...)
	}
	return out
}

// index returns the index of a segment of batches. The platform writes no transactions, and the start finds timestamps again.
func index(all []batch) []byte {
	out := make([]byte, 0, indexEntry*len(all))
	for _, b := range all {
		var e [indexEntry]byte
		e[0] = 1 // the version
		binary.LittleEndian.PutUint32(e[2:], b.epoch)
		e[1] = byte(sum(e[2:]))
		out = append(out, e[:]...)
	}
	return out
}

// indexMatches reports whether an index has an entry for each batch of a segment, and
// each of them is whole.
func indexMatches(text []byte, all []batch) bool {
	if len(text) != indexEntry*len(all) {
		return false
	}
	for at := 0; at < len(text); at += indexEntry {
		if byte(sum(text[at+2:at+indexEntry])) != text[at+1] {
			return false
		}
	}
	return true
}

// topicFile is the content of the broker's file of topics.
type topicFile struct {
	Version int          `json:"version"`
	Topics  []topicEntry `json:"topics"`
}

type topicEntry struct {
	Name       string            `json:"name"`
	ID         []byte            `json:"id"`
	Partitions int               `json:"partitions"`
	Replicas   int               `json:"replicas"`
	Configs    map[string]string `json:"configs,omitempty"`
}

// withFolders adds each topic with a partition's folder to the file of topics, and reports whether one was missing. It calls add for the
// entry of a missing topic.
func withFolders(f topicFile, folders []string, add func(name string) topicEntry) (topicFile, bool) {
	f.Version, f.Topics = 1, slices.Clone(f.Topics)
	changed := false
	for _, folder := range folders {
		name, n, ok := partition(folder)
		if !ok {
			continue
		}
		i := slices.IndexFunc(f.Topics, func(t topicEntry) bool { return t.Name == name })
		if i < 0 {
			f.Topics, i = append(f.Topics, add(name)), len(f.Topics)
		} else if n < f.Topics[i].Partitions {
			continue
		}
		changed = true
		f.Topics[i].Partitions = max(f.Topics[i].Partitions, n+1)
	}
	return f, changed
}

// partition returns the topic and the number of the partition that a folder is
// of.
func partition(folder string) (topic string, number int, ok bool) {
	at := strings.LastIndexByte(folder, '-')
	if at < 1 {
		return "", 0, false
	}
	name, err := url.PathUnescape(folder[:at])
	number, err2 := strconv.Atoi(folder[at+1:])
	return name, number, err == nil && err2 == nil && number >= 0
}

// gaps returns the offsets that are missing before and between the batches of a segment that begins at an offset.
func gaps(all []batch, from int64) []string {
	var out []string
	for _, b := range all {
		if b.first > from {
			out = append(out, fmt.Sprintf("%d to %d", from, b.first-1))
		}
		from = b.next
	}
	return out
}
