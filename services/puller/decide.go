package puller

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// packing is how something is packed, by its first bytes.
type packing struct {
	form    form
	name    string // empty for what is not packed
	unknown string // what it is, where it cannot be unpacked
}

// magicSize is how many bytes tell how something is packed.
const magicSize = 6

// packingOf tells by its first bytes how something is packed.
func packingOf(head []byte) packing {
	for magic, p := range map[string]packing{
		"\x1f\x8b": {gzipForm, "gzip", ""}, "BZh": {bzip2Form, "bzip2", ""}, "\x28\xb5\x2f\xfd": {zstdForm, "zstd", ""},
		"PK\x03\x04": {zipForm, "zip", ""}, "PK\x05\x06": {zipForm, "zip", ""},
		"\xfd7zXZ\x00": {name: "xz", unknown: "it is compressed with xz"}, "\x04\x22\x4d\x18": {name: "lz4", unknown: "it is compressed with lz4"},
		"\x5d\x00\x00\x80\x00": {name: "lzma", unknown: "it is compressed with lzma"}, "LZIP": {name: "lzip", unknown: "it is compressed with lzip"},
		"7z\xbc\xaf\x27\x1c": {name: "7-Zip", unknown: "it is an archive of 7-Zip"}, "Rar!\x1a\x07": {name: "RAR", unknown: "it is an archive of RAR"},
	} {
		if strings.HasPrefix(string(head), magic) {
			return p
		}
	}
	return packing{}
}

// name says how an archive is compressed.
func (f form) name() string {
	return map[form]string{gzipForm: "gzip", bzip2Form: "bzip2", zstdForm: "zstd", zipForm: "zip"}[f]
}

// set is one data set and its number.
type set struct {
	event.Data

	n      int
	shared bool // by all pods of the role
}

// what names the data set to people.
func (s set) what() string {
	if s.Path == pod.ScriptsDir {
		return fmt.Sprintf("the code that was sent along (sha256 %.12s)", s.SHA256)
	}
	return fmt.Sprintf("data set %s (%s)", s.Path, s.Source)
}

// group is the data sets that are made of one object.
type group struct {
	object string
	shared bool  // they lie on the volume of all pods of the role
	plain  []set // copies of it
	unpack []set // what is in it
}

// sets are those of the group, plain ones first.
func (g group) sets() []set { return slices.Concat(g.plain, g.unpack) }

// groups returns the data sets by object and volume, in the order of the first
// of each, given the numbers of those that are shared.
func groups(data []event.Data, shared []int) []group {
	type place struct {
		object string
		shared bool
	}
	var all []group
	at := make(map[place]int)
	for n, d := range data {
		s := set{d, n, slices.Contains(shared, n)}
		i, ok := at[place{d.Object, s.shared}]
		if !ok {
			i = len(all)
			at[place{d.Object, s.shared}] = i
			all = append(all, group{object: d.Object, shared: s.shared})
		}
		if d.Unpack {
			all[i].unpack = append(all[i].unpack, s)
			continue
		}
		all[i].plain = append(all[i].plain, s)
	}
	return all
}

// need returns how many bytes at least the groups take that are still to be
// brought, of which there is none yet: each file once, and an archive while it
// is unpacked. What is on this disk already may take nothing.
func need(all []group, there func(set) bool) int64 {
	total := int64(0)
	for _, g := range all {
		files := 0
		for _, s := range g.plain {
			if !there(s) && (files == 0 || s.Writable) {
				files++
			}
		}
		if files == 0 && slices.ContainsFunc(g.unpack, func(s set) bool { return !there(s) }) {
			files = 1
		}
		total += int64(files) * g.sets()[0].Size
	}
	return total
}

// on are the groups on the volume that is shared, or on the other.
func on(all []group, shared bool) (some []group) {
	for _, g := range all {
		if g.shared == shared {
			some = append(some, g)
		}
	}
	return some
}

// space is how much a volume holds, in bytes.
type space struct {
	free, total int64
}

// noRoom says that what is to be brought to a volume does not fit: the user's fault
// where it would not fit were the volume empty.
func noRoom(needed int64, s space) error {
	if needed > s.total {
		return user("the data need at least %d bytes, and the volume that they belong on has %d in all: no space left on device; bring less data, or run where the disk is larger", needed, s.total)
	}
	return infra("the data need at least %d bytes, and the volume that they belong on has %d of %d free: no space left on device", needed, s.free, s.total)
}

// look is how much is unpacked between two looks at the free space, and least what
// any file takes.
const (
	look  = 32 << 20
	least = 4 << 10
)

// reserve is how much of a volume is left free while archives are unpacked, given
// what settings say: others write there too.
func reserve(setting, total int64) int64 {
	if setting > 0 {
		return setting
	}
	return min(256<<20, total/20)
}

// full says that nothing more can be unpacked to a volume to which an archive, and
// what else belongs there, have brought so many bytes. It is the user's fault where
// they have nine tenths of it: it would be too small for them on any other day too.
func full(brought int64, s space, reserve int64) *Error {
	const words = "there is no space left on the volume: it has %d bytes, of which %d are free and %d stay free for others (executor.pods.unpack.reserve of the platform's settings), and the data have taken %d so far"
	if room := s.total - reserve; room > 0 && brought >= room/10*9 {
		return user(words+": they do not fit; bring less data, or run where the disk is larger", s.total, s.free, reserve, brought)
	}
	return infra(words+": others have taken the rest", s.total, s.free, reserve, brought)
}

// check says why a data set cannot be pulled at all.
func check(d event.Data) error {
	if !strings.HasPrefix(d.Object, "objects/") || !filepath.IsLocal(d.Object) || path.Clean(d.Object) != d.Object {
		return infra("data set %s: %q is no key of the object store", d.Path, d.Object)
	}
	if len(d.SHA256) != 64 {
		return infra("data set %s: %q is no sha256 to check it by", d.Path, d.SHA256)
	}
	return nil
}

// shared reports whether two data sets may be one file: nobody can write to it.
func shared(a, b set) bool { return !a.Writable && !b.Writable }

// Permissions of what the benchmark finds, whoever it runs as.
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

// kind is what an archive's entry is.
type kind int

const (
	other kind = iota // what no archive of data has: devices, pipes
	file
	folder
	symlink
	hardlink
	nothing // about the archive itself
)

// entry is one entry of an archive, as the archive has it.
type entry struct {
	name       string
	kind       kind
	link       string // what a link leads to
	size       int64  // of a file, as far as the archive tells
	executable bool
}

// Limits of an archive that settings do not change, and those that hold where they
// say nothing.
const (
	mostName  = 4000    // bytes
	mostParts = 100     // of a name
	mostLinks = 8 << 20 // bytes of the names of its symbolic links, which are kept until the end

	usualFiles = 1_000_000
	usualBytes = 1 << 40
)

// guard watches over what is unpacked from one archive.
type guard struct {
	size             int64 // of the archive
	mostFiles, files int   // all, and those that may still come
	mostBytes, bytes int64 // the same
	links            int   // bytes that may still come
}

// newGuard returns a guard for an archive of size bytes. Zero limits are the
// defaults.
func newGuard(size int64, maxFiles int, maxBytes int64) *guard {
	files, all := cmp.Or(maxFiles, usualFiles), maxBytes
	if all <= 0 {
		all = max(size, min(1<<30+200*min(size, usualBytes), usualBytes))
	}
	return &guard{size: size, mostFiles: files, files: files, mostBytes: all, bytes: all, links: mostLinks}
}

// admit returns where an entry belongs below the folder that is unpacked to, ""
// for nowhere, or says why the archive is refused.
func (g *guard) admit(e entry) (string, error) {
	if e.kind == nothing {
		return "", nil
	}
	if err := g.count(); err != nil {
		return "", err
	}
	if e.size > g.bytes {
		return "", g.tooLarge()
	}
	if len(e.name) > mostName || len(e.link) > mostName {
		return "", user("%.100q… has a name, or leads to one, of more than %d bytes", e.name, mostName)
	}
	name := path.Clean(e.name)
	switch {
	case strings.Count(name, "/") >= mostParts:
		return "", user("%.100q… lies more than %d folders deep", e.name, mostParts-1)
	case strings.ContainsRune(e.name, 0) || strings.ContainsRune(e.link, 0):
		return "", user("%.100q has a name that no file can have", e.name)
	case path.IsAbs(e.name):
		return "", user("%.100q has an absolute name", e.name)
	case !filepath.IsLocal(name):
		return "", user("%.100q leads out of the archive", e.name)
	case e.kind == other:
		return "", user("%.100q is neither a file nor a folder nor a link", e.name)
	case name == ".":
		return g.top(e)
	}
	return name, g.follow(e, name)
}

// count admits one more entry, or folder that none is about and that others lie in.
func (g *guard) count() error {
	if g.files--; g.files < 0 {
		return g.tooMany()
	}
	return nil
}

// top is for the entry that is the folder itself.
func (*guard) top(e entry) (string, error) {
	if e.kind == folder {
		return "", nil
	}
	return "", user("%.100q is not a folder", e.name)
}

// follow says why a link is refused.
func (g *guard) follow(e entry, name string) error {
	switch {
	case e.kind == symlink && (path.IsAbs(e.link) || !filepath.IsLocal(path.Join(path.Dir(name), e.link))),
		e.kind == hardlink && (path.IsAbs(e.link) || !filepath.IsLocal(e.link)):
		return user("%.100q is a link that leads out of the archive, to %.100q", e.name, e.link)
	case e.kind == symlink:
		if g.links -= len(name); g.links < 0 {
			return user("the names of its symbolic links have more than %d bytes", mostLinks)
		}
	}
	return nil
}

func (g *guard) tooMany() error {
	return user("it has more than the %d files and folders that are allowed: executor.pods.unpack.max_files of the platform's settings allows more", g.mostFiles)
}

func (g *guard) tooLarge() error {
	return user("it holds more than the %d bytes that are allowed in an archive of %d: executor.pods.unpack.max_bytes of the platform's settings allows more", g.mostBytes, g.size)
}

// Error says why data could not be pulled, and whose fault that is.
type Error struct {
	Class   event.Class // event.ClassUser or event.ClassInfra
	Message string      // one line
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func user(format string, args ...any) *Error {
	return &Error{Class: event.ClassUser, Message: fmt.Sprintf(format, args...)}
}

func infra(format string, args ...any) *Error {
	return &Error{Class: event.ClassInfra, Message: fmt.Sprintf(format, args...)}
}
