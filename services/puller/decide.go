package puller

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// packing is how a file is packed, according to its first bytes.
type packing struct {
	format      archiveFormat
	name        string // empty for an unpacked file
	unsupported string // name of a format that cannot be unpacked
}

// magicSize is how many bytes identify a packing.
const magicSize = 6

// detectPacking returns the packing for the first bytes of a file.
func detectPacking(head []byte) packing {
	for magic, p := range map[string]packing{
		"\x1f\x8b": {gzipFormat, "gzip", ""}, "BZh": {bzip2Format, "bzip2", ""}, "\x28\xb5\x2f\xfd": {zstdFormat, "zstd", ""},
		"PK\x03\x04": {zipFormat, "zip", ""}, "PK\x05\x06": {zipFormat, "zip", ""},
		"\xfd7zXZ\x00":         {name: "xz", unsupported: "it is compressed with xz"},
		"\x04\x22\x4d\x18":     {name: "lz4", unsupported: "it is compressed with lz4"},
		"\x5d\x00\x00\x80\x00": {name: "lzma", unsupported: "it is compressed with lzma"},
		"LZIP":                 {name: "lzip", unsupported: "it is compressed with lzip"},
		"7z\xbc\xaf\x27\x1c":   {name: "7-Zip", unsupported: "it is an archive of 7-Zip"},
		"Rar!\x1a\x07":         {name: "RAR", unsupported: "it is an archive of RAR"},
	} {
		if strings.HasPrefix(string(head), magic) {
			return p
		}
	}
	return packing{}
}

// name returns the name of an archive's compression.
func (f archiveFormat) name() string {
	return map[archiveFormat]string{gzipFormat: "gzip", bzip2Format: "bzip2", zstdFormat: "zstd", zipFormat: "zip"}[f]
}

// dataSet is one data set and its number.
type dataSet struct {
	event.Data

	index  int
	shared bool // by all pods of the role
}

// describe names the data set to people.
func (s dataSet) describe() string {
	if s.Path == pod.ScriptsDir {
		return fmt.Sprintf("the code that was sent along (sha256 %.12s)", s.SHA256)
	}
	return fmt.Sprintf("data set %s (%s)", s.Path, s.Source)
}

// objectGroup is the data sets that are made of one object.
type objectGroup struct {
	object string
	shared bool      // they lie on the volume of all pods of the role
	plain  []dataSet // data sets that are copies of it
	unpack []dataSet // data sets with its content
}

// sets are those of the group, plain ones first.
func (g objectGroup) sets() []dataSet { return slices.Concat(g.plain, g.unpack) }

// groupByObject groups the data sets by object and volume, in the order of the first of each; shared has the numbers of the shared ones.
func groupByObject(data []event.Data, shared []int) []objectGroup {
	type place struct {
		object string
		shared bool
	}
	var all []objectGroup
	at := make(map[place]int)
	for n, d := range data {
		s := dataSet{d, n, slices.Contains(shared, n)}
		i, ok := at[place{d.Object, s.shared}]
		if !ok {
			i = len(all)
			at[place{d.Object, s.shared}] = i
			all = append(all, objectGroup{object: d.Object, shared: s.shared})
		}
		if d.Unpack {
			all[i].unpack = append(all[i].unpack, s)
			continue
		}
		all[i].plain = append(all[i].plain, s)
	}
	return all
}

// neededBytes returns the least number of bytes that the missing data sets of groups take: each file once, and an archive while it is
// unpacked. Objects on this disk may take no room.
func neededBytes(all []objectGroup, isPlaced func(dataSet) bool) int64 {
	total := int64(0)
	for _, g := range all {
		files := 0
		for _, s := range g.plain {
			if !isPlaced(s) && (files == 0 || s.Writable) {
				files++
			}
		}
		if files == 0 && slices.ContainsFunc(g.unpack, func(s dataSet) bool { return !isPlaced(s) }) {
			files = 1
		}
		total += int64(files) * g.sets()[0].Size
	}
	return total
}

// onVolume returns the groups on the shared volume, or on the other.
func onVolume(all []objectGroup, shared bool) (matching []objectGroup) {
	for _, g := range all {
		if g.shared == shared {
			matching = append(matching, g)
		}
	}
	return matching
}

// diskSpace is the free and the total space of a volume, in bytes.
type diskSpace struct {
	free, total int64
}

// noSpaceError returns the error for data that do not fit on a volume. It is the user's fault if they would not fit on the empty volume.
func noSpaceError(needed int64, s diskSpace) error {
	if needed > s.total {
		return userError("the data need at least %d bytes, and the volume that they belong on has %d in all: no space left on device; bring less data, or run where the disk is larger", needed, s.total)
	}
	return infraError("the data need at least %d bytes, and the volume that they belong on has %d of %d free: no space left on device",
		needed, s.free, s.total)
}

// spaceCheckInterval is how many bytes are unpacked between two checks of the free space, and least how many bytes any file takes.
const (
	spaceCheckInterval = 32 << 20
	minReserve         = 4 << 10
)

// reserveBytes returns how many bytes of a volume stay free while archives are unpacked, because other programs write there too; setting
// overrides the default.
func reserveBytes(setting, total int64) int64 {
	if setting > 0 {
		return setting
	}
	return min(256<<20, total/20)
}

// volumeFullError returns the error for a full volume to which the data sets have brought unpackedBytes. It is the user's fault if they
// have nine tenths of the volume: it would be too small for them on any day.
func volumeFullError(unpackedBytes int64, s diskSpace, reserve int64) *pullError {
	const words = "there is no space left on the volume: it has %d bytes, of which %d are free and %d stay free for others (executor.pods.unpack.reserve of the platform's settings), and the data have taken %d so far"
	if room := s.total - reserve; room > 0 && unpackedBytes >= room/10*9 {
		return userError(words+": they do not fit; bring less data, or run where the disk is larger", s.total,
			s.free, reserve, unpackedBytes)
	}
	return infraError(words+": others have taken the rest", s.total, s.free, reserve, unpackedBytes)
}

// checkDataSet returns why a data set cannot be pulled at all.
func checkDataSet(d event.Data) error {
	if !strings.HasPrefix(d.Object, "objects/") || !filepath.IsLocal(d.Object) || path.Clean(d.Object) != d.Object {
		return infraError("data set %s: %q is no key of the object store", d.Path, d.Object)
	}
	if len(d.SHA256) != 64 {
		return infraError("data set %s: %q is no sha256 to check it by", d.Path, d.SHA256)
	}
	return nil
}

// canShareFile reports whether two data sets may be one file: no program may write to it.
func canShareFile(a, b dataSet) bool { return !a.Writable && !b.Writable }

// Permissions of files and folders for a benchmark that may run as any user.
func dirMode(writable bool) uint32 {
	if writable {
		return 0o777
	}
	return 0o755
}

func fileMode(writable, executable bool) uint32 {
	mode := uint32(0o444)
	if writable {
		mode |= 0o222
	}
	if executable {
		mode |= 0o111
	}
	return mode
}

// entryKind is the type of an archive's entry.
type entryKind int

const (
	otherEntry entryKind = iota // a type that archives of data do not have: devices, pipes
	fileEntry
	dirEntry
	symlinkEntry
	hardlinkEntry
	skippedEntry // about the archive itself
)

// entry is one entry of an archive, as in the archive.
type entry struct {
	name       string
	kind       entryKind
	link       string // target of a link
	size       int64  // of a file, according to the archive
	executable bool
}

// Limits of an archive that settings do not change, and the defaults of others.
const (
	maxNameBytes = 4000    // bytes
	maxNameParts = 100     // of a name
	maxLinkBytes = 8 << 20 // bytes of the names of its symbolic links, which are in memory until the end

	defaultMaxFiles = 1_000_000
	defaultMaxBytes = 1 << 40
)

// guard checks the entries of one archive.
type guard struct {
	size            int64 // of the archive
	maxFiles, files int   // the limit, and how many entries may still come
	maxBytes, bytes int64 // the same
	links           int   // bytes that may still come
}

// newGuard returns a guard for an archive of size bytes. Zero limits are the
// defaults.
func newGuard(size int64, maxFiles int, maxBytes int64) *guard {
	files, all := cmp.Or(maxFiles, defaultMaxFiles), maxBytes
	if all <= 0 {
		all = max(size, min(1<<30+200*min(size, defaultMaxBytes), defaultMaxBytes))
	}
	all = min(all, math.MaxInt64-1) // a reader reads one byte more, to see that there is more
	return &guard{size: size, maxFiles: files, files: files, maxBytes: all, bytes: all, links: maxLinkBytes}
}

// admit returns the path of an entry below the target folder, "" for an entry to skip, or why the archive is refused.
func (g *guard) admit(e entry) (string, error) {
	if e.kind == skippedEntry {
		return "", nil
	}
	if err := g.count(); err != nil {
		return "", err
	}
	if e.size > g.bytes {
		return "", g.tooLargeError()
	}
	if len(e.name) > maxNameBytes || len(e.link) > maxNameBytes {
		return "", userError("%.100q… has a name, or leads to one, of more than %d bytes", e.name, maxNameBytes)
	}
	name := path.Clean(e.name)
	switch {
	case strings.Count(name, "/") >= maxNameParts:
		return "", userError("%.100q… lies more than %d folders deep", e.name, maxNameParts-1)
	case strings.ContainsRune(e.name, 0) || strings.ContainsRune(e.link, 0):
		return "", userError("%.100q has a name that no file can have", e.name)
	case path.IsAbs(e.name):
		return "", userError("%.100q has an absolute name", e.name)
	case !filepath.IsLocal(name):
		return "", userError("%.100q leads out of the archive", e.name)
	case e.kind == otherEntry:
		return "", userError("%.100q is neither a file nor a folder nor a link", e.name)
	case name == ".":
		return g.checkRoot(e)
	}
	return name, g.checkLink(e, name)
}

// count counts one more entry, or a parent folder without an entry.
func (g *guard) count() error {
	if g.files--; g.files < 0 {
		return g.tooManyError()
	}
	return nil
}

// checkRoot checks the entry for the folder itself.
func (*guard) checkRoot(e entry) (string, error) {
	if e.kind == dirEntry {
		return "", nil
	}
	return "", userError("%.100q is not a folder", e.name)
}

// checkLink returns why a link is refused.
func (g *guard) checkLink(e entry, name string) error {
	switch {
	case e.kind == symlinkEntry && (path.IsAbs(e.link) || !filepath.IsLocal(path.Join(path.Dir(name), e.link))),
		e.kind == hardlinkEntry && (path.IsAbs(e.link) || !filepath.IsLocal(e.link)):
		return userError("%.100q is a link that leads out of the archive, to %.100q", e.name, e.link)
	case e.kind == symlinkEntry:
		if g.links -= len(name); g.links < 0 {
			return userError("the names of its symbolic links have more than %d bytes", maxLinkBytes)
		}
	}
	return nil
}

func (g *guard) tooManyError() error {
	return userError("it has more than the %d files and folders that are allowed: executor.pods.unpack.max_files of the platform's settings allows more", g.maxFiles)
}

func (g *guard) tooLargeError() error {
	return userError("it holds more than the %d bytes that are allowed in an archive of %d: executor.pods.unpack.max_bytes of the platform's settings allows more", g.maxBytes, g.size)
}

// pullError is why data could not be pulled, and whose fault that is.
type pullError struct {
	Class   event.Class // event.ClassUser or event.ClassInfra
	Message string      // one line
}

// Error implements error.
func (e *pullError) Error() string { return e.Message }

func userError(format string, args ...any) *pullError {
	return &pullError{Class: event.ClassUser, Message: fmt.Sprintf(format, args...)}
}

func infraError(format string, args ...any) *pullError {
	return &pullError{Class: event.ClassInfra, Message: fmt.Sprintf(format, args...)}
}
