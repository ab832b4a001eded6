package puller

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

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

// noRoom says that a volume is too small.
func noRoom(needed, free int64) error {
	return infra("the data need at least %d bytes, and the volume that they belong on has %d free: no space left on device", needed, free)
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

// guard watches over what is unpacked from one archive.
type guard struct {
	files int   // that may still come
	bytes int64 // that may still come
}

// newGuard returns a guard for an archive of size bytes. Zero limits are the
// defaults.
func newGuard(size int64, maxFiles int, maxBytes int64) *guard {
	g := &guard{files: 1_000_000, bytes: 1<<30 + 200*size}
	if maxFiles > 0 {
		g.files = maxFiles
	}
	if maxBytes > 0 {
		g.bytes = maxBytes
	}
	return g
}

// admit returns where an entry belongs below the folder that is unpacked to, ""
// for nowhere, or says why the archive is refused.
func (g *guard) admit(e entry) (string, error) {
	if e.kind == nothing {
		return "", nil
	}
	if g.files--; g.files < 0 {
		return "", user("it has more entries than are allowed")
	}
	if e.size > g.bytes {
		return "", g.tooLarge()
	}
	name := path.Clean(e.name)
	switch {
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

// top is for the entry that is the folder itself.
func (*guard) top(e entry) (string, error) {
	if e.kind == folder {
		return "", nil
	}
	return "", user("%.100q is not a folder", e.name)
}

// follow says why a link is refused.
func (*guard) follow(e entry, name string) error {
	switch {
	case e.kind == symlink && (path.IsAbs(e.link) || !filepath.IsLocal(path.Join(path.Dir(name), e.link))),
		e.kind == hardlink && (path.IsAbs(e.link) || !filepath.IsLocal(e.link)):
		return user("%.100q is a link that leads out of the archive, to %.100q", e.name, e.link)
	}
	return nil
}

func (*guard) tooLarge() error { return user("it holds more bytes than are allowed") }

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
