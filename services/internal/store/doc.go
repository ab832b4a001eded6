package store

import (
	"context"
	"encoding/json"
	"fmt"
)

// Kind is the subject of a document. Each kind has one owner that writes it.
type Kind string

// Kinds of documents, in the order of the flow.
const (
	KindIdempotencyKey     Kind = "key"           // gateway: owner and idempotency key → run
	KindRunName            Kind = "name"          // gateway: owner and run name → run
	KindSubmission         Kind = "submission"    // gateway: run → the submission
	KindOutbox             Kind = "outbox"        // gateway: run → events that are stored but not yet published
	KindCancel             Kind = "cancel"        // gateway: run → the request to cancel it
	KindOriginalDescriptor Kind = "original"      // gateway: run → the descriptor as the user sent it, if the run has another
	KindDescriptor         Kind = "descriptor"    // gateway: namespace, name, version → a stored descriptor
	KindArtifact           Kind = "artifact"      // gateway: run, name → a stored file of the run
	KindCodeBundle         Kind = "script"        // gateway: owner, digest → code that is stored for that owner
	KindPin                Kind = "pin"           // gateway: digest, run → the run needs the object, which the sweep keeps for it
	KindImport             Kind = "import"        // gateway: run → its import from another platform, and whether all of it is stored
	KindManifest           Kind = "manifest"      // gateway: run and attempt → the objects of a run from another platform
	KindSchedule           Kind = "schedule"      // gateway: schedule → its definition
	KindScheduleVersion    Kind = "edition"       // gateway: schedule, version → the request that each firing makes
	KindFirings            Kind = "firings"       // gateway, under a lease: schedule → firings that were submitted, and missed ones
	KindBackfill           Kind = "backfill"      // gateway: schedule, span → past firings whose runs are being created
	KindSet                Kind = "set"           // gateway, and under a lease: set → how far its runs have come
	KindSetRequest         Kind = "sweep"         // gateway: set, digest → the request that its runs are made of
	KindOpenSet            Kind = "openset"       // gateway: set → it has not finished, or finished a short time ago
	KindSetRollup          Kind = "rollup"        // gateway: set, cells → results of these cells that do not change any more
	KindBaseline           Kind = "baseline"      // gateway: namespace, name → the runs that others are compared with
	KindOrder              Kind = "order"         // gateway: run → the data sets to fetch for it
	KindDownload           Kind = "transfer"      // fetcher: source → the transfer under way or done
	KindObject             Kind = "object"        // fetcher, and gateway for code that is sent along: digest → object in the object store
	KindQueue              Kind = "queue"         // executor: priority, arrival → run that waits for a slot
	KindSlotTable          Kind = "ledger"        // executor: the one document with the slots and their holders
	KindPlan               Kind = "plan"          // executor: run and attempt → the objects of the run
	KindWatch              Kind = "watch"         // watcher: run → the launched attempt that is watched
	KindPendingEnd         Kind = "pendingend"    // watcher and executor: attempt → its end, which waits for steps that always run
	KindLogProgress        Kind = "followed"      // metrics-pusher: pod → how far its log is shipped, or that all of it is
	KindPendingSummary     Kind = "unsummed"      // metrics-pusher: run → the run has to be summarised
	KindSummary            Kind = "summary"       // metrics-pusher: run → the summaries of its samples (Summaries)
	KindPoints             Kind = "points"        // store/elastic: run → what its points have in common, and which documents they are
	KindReindex            Kind = "reindex"       // metrics-pusher, under a lease: how far points of earlier runs are stored
	KindOwed               Kind = "owed"          // metrics-pusher: run → destinations that lack the rows of the run (Owed)
	KindEnvironment        Kind = "environment"   // metrics-pusher: run → the environment of its pods
	KindRuleSet            Kind = "rules"         // analyst: namespace, task → the rules of the newest descriptor of the task
	KindRuleState          Kind = "rulestate"     // analyst: namespace, rule, series → its incidents, and why it cannot be applied
	KindIncident           Kind = "incident"      // analyst: namespace, incident → the incident
	KindOpenIncident       Kind = "openincident"  // analyst: namespace, incident → it is open, or ended a short time ago
	KindIncidentIndex      Kind = "incidentindex" // analyst: namespace, time, incident → it exists (incident.IndexKey)
	KindConfirmation       Kind = "confirmation"  // analyst: namespace, request → the runs that are to confirm incidents
	KindConfirmationRuns   Kind = "confirming"    // gateway, under a lease: namespace, request → those that were submitted
	KindIncidentGroup      Kind = "incidents"     // analyst: namespace, group → its incidents, and the transitions that have notices
	KindDelivery           Kind = "notice"        // analyst, and gateway for tests and ends of sets: receiver, notice → what became of it
	KindUnsentNotice       Kind = "unsent"        // likewise: receiver, notice → the notice is waiting
	KindAck                Kind = "ack"           // gateway: namespace, incident → what a user said of it
	KindMute               Kind = "mute"          // gateway: namespace, mute → whose notices are not sent, and until when
	KindForgotten          Kind = "forgotten"     // bai admin store forget: "runs" → the records of runs before a time were removed
	KindLease              Kind = "lease"         // any service: name → its holder
	KindSignatures         Kind = "seals"         // bai admin seals, and topic creation: from which offsets on messages need a seal
	KindPeerBroker         Kind = "mark"          // standalone: which broker lies beside the store, and when they last noted each other
)

// LogShippedKey is the key of the document, of KindLogProgress, which means that the log of a pod's container is shipped to its end.
func LogShippedKey(pod string) string { return "done/" + pod }

// AttemptKey is the key of documents, of KindPlan and KindManifest, that are
// about one attempt of a run.
func AttemptKey(run string, attempt int) string { return fmt.Sprintf("%s/%d", run, attempt) }

// Doc is a small document that is written by compare-and-set.
type Doc struct {
	Kind    Kind
	Key     string // any text of 1 to 512 bytes
	Version int64  // set by the store, from 1, increased by every write
	Value   []byte // JSON
}

// Docs is the part of a store that has small documents.
type Docs interface {
	Getter
	DocWriter
}

// Getter reads documents.
type Getter interface {
	// Doc returns the document, as last written by any process, or ErrNotFound.
	Doc(ctx context.Context, kind Kind, key string) (Doc, error)
}

// DocWriter writes documents.
type DocWriter interface {
	// CreateDoc stores d as version 1, or returns ErrExists.
	CreateDoc(ctx context.Context, d Doc) error
	// ReplaceDoc stores d in place of the version in d, and returns the new version, or ErrConflict if the store has another version.
	ReplaceDoc(ctx context.Context, d Doc) (int64, error)
	// DeleteDoc removes the version in d, or any version if it is 0. It returns ErrConflict if the store has another version, and nil if it
	// has none.
	DeleteDoc(ctx context.Context, d Doc) error
}

// Lister is the part of a store that finds documents by kind.
type Lister interface {
	// Docs returns up to limit documents of kind with keys greater than after, in the byte order of their keys. The latest writes may be
	// missing.
	Docs(ctx context.Context, kind Kind, after string, limit int) ([]Doc, error)
}

// Get reads the document of kind and key as a T, and its version.
func Get[T any](ctx context.Context, docs Getter, kind Kind, key string) (T, int64, error) {
	d, err := docs.Doc(ctx, kind, key)
	if err != nil {
		var none T
		return none, 0, err
	}
	v, err := Decode[T](d)
	return v, d.Version, err
}

// Decode returns the value of a document as a T.
func Decode[T any](d Doc) (v T, err error) {
	if err := json.Unmarshal(d.Value, &v); err != nil {
		return v, fmt.Errorf("read %s %q: %w", d.Kind, d.Key, err)
	}
	return v, nil
}

// Create stores v as a new document, or returns ErrExists.
func Create(ctx context.Context, docs Docs, kind Kind, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s %q: %w", kind, key, err)
	}
	return docs.CreateDoc(ctx, Doc{Kind: kind, Key: key, Value: b})
}

// Replace stores v in place of version, and returns the new version, or ErrConflict.
func Replace(ctx context.Context, docs Docs, kind Kind, key string, version int64, v any) (int64, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("write %s %q: %w", kind, key, err)
	}
	return docs.ReplaceDoc(ctx, Doc{Kind: kind, Key: key, Version: version, Value: b})
}
