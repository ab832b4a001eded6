package dataset

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Source is one data set as a descriptor asks for it.
type Source struct {
	URL      string `json:"url"`
	Path     string `json:"path"`
	MD5      string `json:"md5,omitempty"`    // hex, lower case
	SHA256   string `json:"sha256,omitempty"` // hex, lower case
	Unpack   bool   `json:"unpack,omitempty"`
	Writable bool   `json:"writable,omitempty"`
	Uploaded bool   `json:"sent,omitempty"` // along with the run: it lies in the object store, and nowhere else
}

// Key names the download of a source. Sources of one URL with equal digests are
// downloaded as one.
func (s Source) Key() string { return event.Derive("transfer", s.URL, s.MD5, s.SHA256) }

// pinned reports whether a digest fixes the content. Then the source need not be
// asked again once the content is stored.
func (s Source) pinned() bool { return s.MD5 != "" || s.SHA256 != "" }

// Verify returns how content differs from the digests of the source, nil where it
// does not. The digest of a folder is that of its list, not of its archive.
func (s Source) Verify(o store.Object, tree *source.Tree) *Failure {
	if tree != nil {
		o.SHA256, o.MD5 = tree.SHA256, "none, for it is a folder,"
	}
	for _, d := range [...]struct{ name, want, got string }{{"sha256", s.SHA256, o.SHA256}, {"md5", s.MD5, o.MD5}} {
		if d.want != "" && d.want != d.got {
			return &Failure{
				event.ChecksumMismatch, event.ClassUser,
				fmt.Sprintf("source %s has %s %s, but the descriptor says %s", source.Redact(s.URL), d.name, d.got, d.want),
			}
		}
	}
	return nil
}

// codeLost is the failure of code that was sent along with a run and is not stored
// any more.
func (s Source) codeLost() *Failure {
	return &Failure{
		event.FetchFailed, event.ClassPlatform,
		fmt.Sprintf("the code that was sent along (sha256 %s) is not in the object store any more: send it again", s.SHA256),
	}
}

// Failure says why a source cannot be had.
type Failure struct {
	Reason  event.Reason `json:"reason"`
	Class   event.Class  `json:"class"`
	Message string       `json:"message"`
}

// MaxMessage is how many bytes of a message are kept: a server's own text may be in
// it.
const MaxMessage = 4 << 10

// Truncated returns the failure with a message that fits into an event, and with a
// class.
func (f Failure) Truncated() Failure {
	f.Class, f.Message = cmp.Or(f.Class, event.ClassPlatform), Clip(f.Message, MaxMessage)
	return f
}

// Clip returns the beginning of s, up to n bytes of whole characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Orders that are open and orders that have ended are documents of one kind, beside
// those of package download and of runs that cannot be read. Only the open orders
// are ever listed.
const (
	OpenOrderPrefix = "open/"
	DoneOrderPrefix = "done/"
)

// Order asks for the sources of a run. It is remembered until it is done.
type Order struct {
	Submitted   event.Submitted `json:"submitted"`
	Sources     []Source        `json:"sources"`
	RequestedAt time.Time       `json:"asked"`              // from then on an answer of a source counts
	Prefetch    bool            `json:"prefetch,omitempty"` // no run has asked: no event reports on it
	WaitReason  string          `json:"waits,omitempty"`    // of a prefetch: why it waits now; empty where it moves
}

// Ending is the outcome of an order. The first one that is remembered stays.
type Ending struct {
	Data     []event.Data    `json:"data,omitempty"`     // of a run that was fetched
	Finished *event.Finished `json:"finished,omitempty"` // of a run that ended here
}

// Download is the state of one source's way into the object store.
type Download struct {
	Source     string            `json:"source"`            // URL, without its secrets
	Fence      int64             `json:"fence"`             // of the lease under which this was written
	PartialKey string            `json:"writing,omitempty"` // key of an object that may be incomplete
	SHA256     string            `json:"sha256,omitempty"`  // of the content that came last
	Validators source.Validators `json:"validators,omitzero"`
	Tree       *source.Tree      `json:"tree,omitempty"`     // of a folder, whose archive the content is
	Revision   string            `json:"revision,omitempty"` // of a repository, that the content is of
	CheckedAt  time.Time         `json:"checked,omitzero"`   // when the source last answered
	Failure    *Failure          `json:"failure,omitempty"`  // if that was its answer
}

// satisfies reports whether the document answers a request for s of that time: then
// SHA256 names the content, or Failure says why there is none. Pinned content never
// changes; other content, and a failure, count only for requests that were made
// before the source answered. A download under way answers none.
func (d Download) satisfies(s Source, requestedAt time.Time) bool {
	fresh := !d.CheckedAt.IsZero() && !d.CheckedAt.Before(requestedAt)
	if d.PartialKey != "" {
		return false
	}
	if d.Failure != nil {
		return fresh
	}
	return d.SHA256 != "" && (fresh || s.pinned())
}

// SourceState is the content of a source, or why there is none, or neither: then it
// is to be downloaded.
type SourceState struct {
	Object   *store.Object
	Tree     *source.Tree // where the object is the archive of a folder
	Revision string       // of a repository, that the object is of
	Failure  *Failure
}

// Known reports whether the source need not be downloaded.
func (s SourceState) Known() bool { return s.Object != nil || s.Failure != nil }

// Size writes a number of bytes for people.
func Size(n int64) string {
	f := float64(n)
	for _, unit := range [...]string{"B", "KiB", "MiB", "GiB"} {
		if f < 1000 {
			return fmt.Sprintf("%.3g %s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.4g TiB", f)
}
