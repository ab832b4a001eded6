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

// Source is a data set in a descriptor.
type Source struct {
	URL      string `json:"url"`
	Path     string `json:"path"`
	MD5      string `json:"md5,omitempty"`    // hex, lower case
	SHA256   string `json:"sha256,omitempty"` // hex, lower case
	Unpack   bool   `json:"unpack,omitempty"`
	Writable bool   `json:"writable,omitempty"`
	Uploaded bool   `json:"sent,omitempty"` // sent along with the run: it exists only in the object store
}

// Key returns the key of a source's download. Sources with the same URL and digests
// share one download.
func (s Source) Key() string { return event.Derive("transfer", s.URL, s.MD5, s.SHA256) }

// pinned reports whether a digest fixes the content. The source of stored pinned
// content is not contacted again.
func (s Source) pinned() bool { return s.MD5 != "" || s.SHA256 != "" }

// Verify returns the difference between an object and the digests of its source, or
// nil. The digest of a folder is that of its list of files, not of its archive.
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

// codeLost returns the failure for code that was sent along with a run and is not
// stored any more.
func (s Source) codeLost() *Failure {
	return &Failure{
		event.FetchFailed, event.ClassPlatform,
		fmt.Sprintf("the code that was sent along (sha256 %s) is not in the object store any more: send it again", s.SHA256),
	}
}

// Failure is the reason why a source cannot be fetched.
type Failure struct {
	Reason  event.Reason `json:"reason"`
	Class   event.Class  `json:"class"`
	Message string       `json:"message"`
}

// MaxMessage is the maximum number of bytes of a stored message, which may include a
// server's own text.
const MaxMessage = 4 << 10

// Truncated returns the failure with a message that fits into an event, and with a
// class.
func (f Failure) Truncated() Failure {
	f.Class, f.Message = cmp.Or(f.Class, event.ClassPlatform), Clip(f.Message, MaxMessage)
	return f
}

// Clip returns the first n bytes of s at most, without a partial character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Prefixes of open and ended orders. Both are documents of one kind, which also has the
// documents of package download and of unreadable runs. Only open orders are ever
// listed.
const (
	OpenOrderPrefix = "open/"
	DoneOrderPrefix = "done/"
)

// Order is the order of a run for its sources. Its document exists until the order is
// done.
type Order struct {
	Submitted   event.Submitted `json:"submitted"`
	Sources     []Source        `json:"sources"`
	RequestedAt time.Time       `json:"asked"`              // answers of a source count from this time on
	Prefetch    bool            `json:"prefetch,omitempty"` // no run needs the sources yet, so no events report on the order
	WaitReason  string          `json:"waits,omitempty"`    // reason why a prefetch waits; empty while data arrive
}

// Ending is the outcome of an order. The first stored outcome is final.
type Ending struct {
	Data     []event.Data    `json:"data,omitempty"`     // of a run whose data are fetched
	Finished *event.Finished `json:"finished,omitempty"` // of a run that ended here
}

// Download is the state of a source's download.
type Download struct {
	Source     string            `json:"source"`            // URL without secrets
	Fence      int64             `json:"fence"`             // fence of the lease under which this was written
	PartialKey string            `json:"writing,omitempty"` // key of an object that may be incomplete
	SHA256     string            `json:"sha256,omitempty"`  // digest of the latest content
	Validators source.Validators `json:"validators,omitzero"`
	Tree       *source.Tree      `json:"tree,omitempty"`     // the folder of which the content is an archive
	Revision   string            `json:"revision,omitempty"` // revision of the repository that the content is of
	CheckedAt  time.Time         `json:"checked,omitzero"`   // time of the source's last answer
	Failure    *Failure          `json:"failure,omitempty"`  // set if that answer was a failure
}

// satisfies reports whether the download answers a request for s at that time. Then
// SHA256 is the digest of the content, or Failure is the reason why there is none.
// Pinned content never changes. Other content, and a failure, only answer requests from
// before the source's last answer. An unfinished download answers no request.
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

// SourceState is the stored content of a source, or the failure to get it. If both are
// nil, the source is to be downloaded.
type SourceState struct {
	Object   *store.Object
	Tree     *source.Tree // set if the object is the archive of a folder
	Revision string       // revision of the repository that the object is of
	Failure  *Failure
}

// Known reports whether the source has an object or a failure, so that it need not be
// downloaded.
func (s SourceState) Known() bool { return s.Object != nil || s.Failure != nil }

// Size returns a number of bytes with a unit, for messages.
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
