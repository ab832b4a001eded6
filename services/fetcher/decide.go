package fetcher

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
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
	Uploaded bool   `json:"sent,omitempty"` // along with the run: the object store has it, and nobody else
}

// Sources returns the data sets of a descriptor: its data, then the models of
// its server, each in their order.
func Sources(d *descriptors.Descriptor) []Source {
	declared := d.Data.Sources
	if d.Server != nil {
		declared = append(slices.Clip(declared), d.Server.Models...)
	}
	var all []Source
	for _, s := range declared {
		all = append(all, Source{
			URL: s.Src, Path: s.Path, MD5: strings.ToLower(s.MD5), SHA256: strings.ToLower(s.SHA256), Unpack: s.Unpack, Writable: !s.ReadOnly,
		})
	}
	return all
}

// UploadedCode returns the code that was sent along with a run as a source; none where
// nothing was.
func UploadedCode(code *event.Bundle) []Source {
	if code == nil {
		return nil
	}
	d := pod.Code(*code)
	return []Source{{URL: d.Source, Path: d.Path, SHA256: d.SHA256, Unpack: d.Unpack, Writable: d.Writable, Uploaded: true}}
}

// CodeLost says that code is not there any more that was when it was sent along.
func CodeLost(s Source) *Failure {
	return &Failure{event.FetchFailed, event.ClassPlatform, fmt.Sprintf("the code that was sent along (sha256 %s) is not in the object store any more: send it again", s.SHA256)}
}

// Key names what is transferred for a source. Sources that are the same, and
// are expected to be the same, are transferred as one.
func (s Source) Key() string { return event.Derive("transfer", s.URL, s.MD5, s.SHA256) }

// Pinned reports whether a digest says what the content must be. Then it need
// not be asked for again once it is there.
func (s Source) Pinned() bool { return s.MD5 != "" || s.SHA256 != "" }

// Verify says how content differs from what the source's digests say, nil if it
// does not. That of a folder is the digest of its list, not of its archive.
func (s Source) Verify(o store.Object, tree *source.Tree) *Failure {
	if tree != nil {
		o.SHA256, o.MD5 = tree.SHA256, "none, for it is a folder,"
	}
	for _, d := range [...]struct{ name, want, got string }{{"sha256", s.SHA256, o.SHA256}, {"md5", s.MD5, o.MD5}} {
		if d.want != "" && d.want != d.got {
			return &Failure{event.ChecksumMismatch, event.ClassUser, fmt.Sprintf("source %s has %s %s, but the descriptor says %s", source.Redact(s.URL), d.name, d.got, d.want)}
		}
	}
	return nil
}

// Failure says why a source cannot be had.
type Failure struct {
	Reason  event.Reason `json:"reason"`
	Class   event.Class  `json:"class"`
	Message string       `json:"message"`
}

// maxMessageBytes is how many bytes of a failure's message are kept: a server's own words
// may be in it.
const maxMessageBytes = 4 << 10

// Truncated returns the failure as one that can be said: no longer than an event may
// be, and with somebody to blame.
func (f Failure) Truncated() Failure {
	f.Class, f.Message = cmp.Or(f.Class, event.ClassPlatform), clip(f.Message, maxMessageBytes)
	return f
}

// clip returns the beginning of s, up to n bytes of whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Order is what is to be fetched for a run, as it is remembered until it is
// done.
type Order struct {
	Submitted   event.Submitted `json:"submitted"`
	Sources     []Source        `json:"sources"`
	RequestedAt time.Time       `json:"asked"`              // from when on an answer of a source counts
	Prefetch    bool            `json:"prefetch,omitempty"` // no run has asked: nothing is said of it
	WaitReason  string          `json:"waits,omitempty"`    // of a prefetch: what it waits for now; empty where it moves
}

// Ending is what became of an order, as it is remembered for ever: the first is
// the truth.
type Ending struct {
	Data     []event.Data    `json:"data,omitempty"`     // of a run that was fetched
	Finished *event.Finished `json:"finished,omitempty"` // of a run that ended here
}

// Events returns the fact that follows from the ending of a run's order.
func (e Ending) Events(run event.Submitted) []event.Event {
	if e.Finished != nil {
		return []event.Event{*e.Finished}
	}
	return []event.Event{Fetched(run, e.Data)}
}

// Fetched says that all data of a run are there.
func Fetched(run event.Submitted, data []event.Data) event.Fetched {
	if data == nil {
		data = []event.Data{}
	}
	return event.Fetched{Header: run.Cause("fetched", ""), Name: run.Name, File: run.File, Descriptor: run.Descriptor, Labels: run.Labels, Data: data}
}

// DownloadRecord is what is remembered of the way of one source into the object
// store.
type DownloadRecord struct {
	Source     string            `json:"source"`            // URL, without its secrets
	Fence      int64             `json:"fence"`             // of the lease under which this was written
	PartialKey string            `json:"writing,omitempty"` // key of an object that may be half a thing
	SHA256     string            `json:"sha256,omitempty"`  // of the content that came last
	Validators source.Validators `json:"validators,omitzero"`
	Tree       *source.Tree      `json:"tree,omitempty"`     // of a folder, whose archive the content is
	Revision   string            `json:"revision,omitempty"` // of a repository, that the content is of
	CheckedAt  time.Time         `json:"checked,omitzero"`   // when the source last had answered
	Failure    *Failure          `json:"failure,omitempty"`  // if that was its answer
}

// Satisfies reports whether what is remembered answers who asked for s at that
// time: then SHA256 tells the content, or Failure why there is none. What is
// pinned never changes; everything else, and a failure, counts only for those
// who had asked when the source answered. A transfer under way answers nobody.
func (t DownloadRecord) Satisfies(s Source, requestedAt time.Time) bool {
	fresh := !t.CheckedAt.IsZero() && !t.CheckedAt.Before(requestedAt)
	if t.PartialKey != "" {
		return false
	}
	if t.Failure != nil {
		return fresh
	}
	return t.SHA256 != "" && (fresh || s.Pinned())
}

// SourceState is what is known of a source now: its content, or why there is none,
// or nothing.
type SourceState struct {
	Object   *store.Object
	Tree     *source.Tree // where the object is the archive of a folder
	Revision string       // of a repository, that the object is of
	Failure  *Failure
}

// Decision is what follows for an order from what is known.
type Decision struct {
	RunEnded      bool         // the run has ended, and nothing is to be said; or
	Ending        *Ending      // of the order; or
	AlreadyStored bool         // (it was remembered before);
	Missing       []Source     // what must be transferred, each once,
	Status        event.Status // and what the user is told meanwhile
}

// RunState is whether a run still wants its data.
type RunState int

// Whether it does.
const (
	RunActive    RunState = iota
	RunCanceling          // it has a cancel mark
	RunEnded              // whoever said so
)

// Decide returns the plan for an order, given whether its run still wants it,
// and what is known of its sources, by key.
func Decide(o Order, state RunState, states map[string]SourceState) Decision {
	switch state {
	case RunEnded:
		return Decision{RunEnded: true}
	case RunCanceling:
		return Decision{Ending: &Ending{Finished: new(Canceled(o.Submitted))}}
	case RunActive:
	}
	var (
		missing []Source
		data    []event.Data
		fetched int
		seen    = make(map[string]bool)
	)
	for _, s := range o.Sources {
		a, first := states[s.Key()], !seen[s.Key()]
		seen[s.Key()] = true
		switch {
		case a.Failure != nil:
			return Decision{Ending: &Ending{Finished: new(Failed(o.Submitted, *a.Failure))}}
		case a.Object != nil:
			fetched++
			data = append(data, event.Data{
				Source: source.Redact(s.URL), Path: s.Path, Object: a.Object.Key, SHA256: a.Object.SHA256, Size: a.Object.Size,
				Unpack: s.Unpack || a.Tree != nil, Writable: s.Writable, Revision: a.Revision,
			})
		case first:
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return Decision{Ending: &Ending{Data: data}}
	}
	return Decision{Missing: missing, Status: FetchingStatus(o.Submitted, fetched, len(o.Sources))}
}

// Unpublishable ends a run of which what is remembered cannot be said.
func Unpublishable(run event.Submitted) event.Finished {
	return Failed(run, Failure{event.PoisonedEvent, event.ClassPlatform, "what became of its data cannot be written as an event: have the fetcher's log looked into, and submit it again"})
}

// Failed ends a run.
func Failed(run event.Submitted, f Failure) event.Finished {
	f = f.Truncated()
	return event.Finished{Header: run.Cause("fetcher/finished", ""), Outcome: event.Failed, Class: f.Class, Reason: f.Reason, Message: f.Message}
}

// Canceled ends a run that nothing was launched for.
func Canceled(run event.Submitted) event.Finished {
	return event.Finished{Header: run.Cause("fetcher/finished", ""), Outcome: event.Canceled, Reason: event.CanceledByUser, Message: "canceled while its data sets were fetched"}
}

// FetchingStatus tells how many data sets of a run are fetched.
func FetchingStatus(run event.Submitted, fetched, total int) event.Status {
	return status(run, "", fetching(fetched, total), event.Progress{Done: int64(fetched), Total: int64(total), Unit: "items"})
}

// fetching says how many data sets are fetched, and how many of them are there.
func fetching(there, all int) string {
	text := fmt.Sprintf("fetching %d data sets", all)
	if all == 1 {
		text = "fetching 1 data set"
	}
	if there > 0 {
		text += fmt.Sprintf(" (%d done)", there)
	}
	return text
}

// Progress is how far the transfers for one run have come.
type Progress struct {
	SetsFetched, SetsTotal int   // data sets
	Done                   int64 // bytes
	Total                  int64 // bytes; 0 where that is not known
	Rate                   int64 // bytes a second
}

// ProgressStatus tells how far the transfers for a run have come.
func ProgressStatus(run event.Submitted, p Progress) event.Status {
	text := fetching(p.SetsFetched, p.SetsTotal) + ": " + size(p.Done)
	if p.Total > 0 {
		text += " of " + size(p.Total)
	}
	text += fmt.Sprintf(", %s/s", size(p.Rate))
	return status(run, "", text, event.Progress{Done: p.Done, Total: p.Total, Unit: "bytes"})
}

// NoSpaceStatus tells that a source of a run, of total bytes (-1: not known), must wait
// until there is space again, and what there is.
func NoSpaceStatus(run event.Submitted, s Source, total int64, space store.Space) event.Status {
	return status(run, event.NoSpace, "the object store is full: "+noSpaceText(source.Redact(s.URL), total, space), event.Progress{})
}

// noSpaceText says what a source of total bytes lacks, and how there is room for it.
func noSpaceText(name string, total int64, space store.Space) string {
	text := name + " waits for room"
	if total >= 0 && space.Free >= 0 {
		text = fmt.Sprintf("%s needs %s, %s free", name, size(total), size(space.Free))
	}
	return text + " (baictl data evict makes room, and so does the end of other runs)"
}

// Wait is what an order waits for.
type Wait struct {
	SetsFetched, SetsTotal int           // data sets
	Source                 Source        // that is waited for
	Started                bool          // its transfer works
	QueuePosition          int           // transfers that are to begin before it, where it has not begun
	Retrying               bool          // it was, in vain
	StoreFull              bool          // for want of space
	Total                  int64         // bytes; -1 where that is not known
	Space                  store.Space   // where it is full
	Reason                 string        // the transfer's own words; empty where it has none
	Waited                 time.Duration // since the run asked
}

// WaitStatus tells what an order waits for of which there is nothing new to tell: that
// it is not forgotten. Each minute has a fact of its own.
func WaitStatus(run event.Submitted, w Wait) event.Status {
	name, why := source.Redact(w.Source.URL), event.Reason("")
	text := fetching(w.SetsFetched, w.SetsTotal) + ": "
	switch {
	case w.StoreFull:
		why = event.NoSpace
		text += "the object store is full: " + noSpaceText(name, w.Total, w.Space)
	case w.Reason != "":
		text += name + ": " + clip(w.Reason, maxMessageBytes/4)
	case w.Started:
		text += name + " sends nothing"
	case w.Retrying:
		text += "retrying " + name + " after a fault of the platform"
	default:
		text += fmt.Sprintf("%s waits for a free transfer (%d ahead)", name, w.QueuePosition)
	}
	if minutes := int(w.Waited / time.Minute); minutes > 0 {
		text += fmt.Sprintf(", for %d min", minutes)
	}
	return status(run, why, text, event.Progress{Done: int64(w.SetsFetched), Total: int64(w.SetsTotal), Unit: "items"})
}

// How long an order waits without a word. The gateway takes a run of which it
// hears nothing for a quarter of an hour for one that stands still.
const (
	minHeartbeat = 4 * time.Minute
	maxHeartbeat = 10 * time.Minute
)

// HeartbeatInterval returns how long an order may wait without a word, where so many do:
// the more there are, the less is said of each.
func HeartbeatInterval(orders int) time.Duration {
	return min(minHeartbeat+time.Duration(orders)*intervalPerRun, maxHeartbeat)
}

// status returns what a user is told. The same words about the same progress are
// the same fact.
func status(run event.Submitted, why event.Reason, text string, p event.Progress) event.Status {
	text = clip(text, maxMessageBytes)
	s := event.Status{Header: run.Cause("fetcher/status", fmt.Sprintf("%s %d/%d", text, p.Done, p.Total)), Phase: event.PhaseFetching, Reason: why, Message: text}
	if p.Unit != "" {
		s.Progress = &p
	}
	return s
}

// size writes bytes as people read them.
func size(n int64) string {
	f := float64(n)
	for _, unit := range [...]string{"B", "KiB", "MiB", "GiB"} {
		if f < 1000 {
			return fmt.Sprintf("%.3g %s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.4g TiB", f)
}

// maxUnsizedBytes is how much of a body of no known size may come before it counts as
// one that has no end.
const maxUnsizedBytes = 1 << 30

// ClassifyError says what the source is to blame for when a transfer has ended with err,
// after done bytes of total (-1: not known), where the object store has that
// space; nil if for nothing. What is larger than an empty store is to blame, and
// so is a body of no known size that fills it: nobody can tell that it would fit
// tomorrow.
func ClassifyError(s Source, err error, done, total int64, space store.Space) *Failure {
	if own := new(source.Error); errors.As(err, &own) {
		return new(Failure{own.Reason, own.Class, own.Message}.Truncated())
	}
	name := source.Redact(s.URL)
	switch {
	case !IsNoSpace(err):
	case total < 0 && done >= maxUnsizedBytes:
		return &Failure{event.DataTooLarge, event.ClassUser, fmt.Sprintf("source %s does not say how much it has, and had filled the object store after %s", name, size(done))}
	case space.Total >= 0 && total > space.Total:
		return &Failure{event.DataTooLarge, event.ClassUser, fmt.Sprintf("source %s has %s, and the object store has room for %s even when it is empty: use less of it, or have the object store moved to a larger disk (objects.url)", name, size(total), size(space.Total))}
	}
	return nil
}

// IsNoSpace reports whether a transfer ended because there is no space.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// PastFetching reports whether a run in that phase is nothing that the fetcher may still
// end: it was fetched, whatever its descriptor looks like today.
func PastFetching(p event.Phase) bool {
	return p != event.PhaseSubmitted && p != event.PhaseFetching && p != ""
}

// Backoff returns how long to wait after so many attempts in vain, from 1.
func Backoff(first time.Duration, attempts int) time.Duration {
	return first << min(max(attempts-1, 0), 5)
}
