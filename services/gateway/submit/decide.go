package submit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Limits of a request.
const (
	maxKey        = 128  // bytes of an idempotency key
	maxIdentifier = 63   // characters in a name, an owner, a namespace or a label
	maxLabels     = 64   // labels in a request, with those of a suite
	maxFile       = 1024 // bytes in the name of the descriptor's file
	maxFaults     = 50   // faults in one response
	maxText       = 1024 // bytes in a fault's message or remedy

	maxOverrideSize = 64 << 10 // bytes in all overrides together
	maxURI          = 2048     // bytes in the URI of a descriptor's origin
)

// Codes of faults of the request itself. Faults of the descriptor have other codes,
// from BAI0001.
const (
	CodeKey       = "BAI9001" // the idempotency key
	CodeFile      = "BAI9002" // the descriptor's file name
	CodeOwner     = "BAI9003"
	CodeNamespace = "BAI9004"
	CodeName      = "BAI9005"
	CodeLabel     = "BAI9006"
	CodeRerun     = "BAI9007" // the run that this run repeats
	CodeOverrides = "BAI9008" // the overrides are too long
	CodeOrigin    = "BAI9009" // the origin of the descriptor
	CodeScript    = "BAI9010" // the code that is sent along
	CodeSweep     = "BAI9011" // the sweep, in a request that cannot be a set
)

// Request is a user's request for a run.
type Request struct {
	Key        string            // idempotency key; empty means that a repeated request is another run
	Descriptor []byte            // TOML
	File       string            // file from which the user read the descriptor
	Owner      string            // user who sends the request
	Namespace  string            // team; empty means default
	Name       string            // name of the run, unique per owner; may be empty
	Labels     map[string]string // override the labels of the descriptor

	Overrides  []event.Override  // replace values of the descriptor, in this order
	Provenance *event.Provenance // origin of the descriptor; nil for a file of the user's
	RerunOf    string            // run that this run repeats; empty for none
	Script     string            // digest of the code that is sent along, in hex; empty for none
	Compares   string            // comparison that the run is made for; empty for none
	Firing     *Firing           // firing of a schedule that this request makes; nil for none
	Cell       *CellRun          // place in a set of the run that this request makes; nil for none
	Confirms   *ConfirmingRun    // incident that the run of this request is to confirm; nil for none
}

// Firing is a firing of a schedule. Under one key it is one run, or one set, even if the
// content of the request changes.
type Firing struct {
	Schedule string
	Time     time.Time // firing time
}

// CellRun is the place of a run in a set. Under one key of the set it is one run, even if
// the content of the request changes.
type CellRun struct {
	Set        string
	Cell       string // name of the cell
	Repetition int    // from 1, within the cell
	Warmup     bool
	Resumes    int // how often the set had been resumed
}

// ConfirmingRun is a run that is to confirm an incident. Under one key of its confirmation it is one
// run, even if the content of the request changes. No user can submit one.
type ConfirmingRun struct {
	Confirmation string // ID of the request of the analyst
	Incident     string
	Nodes        *event.NodePreference // nil for anywhere
}

// fixedByKey reports whether the request is one run under its key even if its content changes.
func (r Request) fixedByKey() bool { return r.Firing != nil || r.Cell != nil || r.Confirms != nil }

// Submission is the plan for a valid request.
type Submission struct {
	Submitted event.Submitted
	Original  *store.OriginalDescriptor // text that the user sent; nil if the run has the same text
	Digest    string                    // equal for requests that ask for the same run
	Warnings  parser.Faults
}

// decide returns the plan for a request, with that run ID and time; p checks the
// descriptor. The error is *InvalidError with every fault of the request and the
// descriptor, *UnsupportedError for a feature that this platform does not have, and
// *ScheduleError for a schedule and *SetError for a set; then the plan has the digest alone.
// A firing of a schedule, a run of the set that a firing makes, and a repetition of either are
// not schedules.
func decide(p parser.Parser, req Request, run string, at time.Time) (Submission, error) {
	req.Namespace = cmp.Or(req.Namespace, "default")
	d, text, faults := Parse(p.In(req.Namespace), req.File, req.Descriptor, req.Overrides)
	faults = slices.Concat(check(req, d, text), checkScript(req, d), checkSweep(req, d), faults)
	refused := Submission{Digest: digest(req, text)}
	if len(faults.Errors()) > 0 {
		return refused, &InvalidError{Faults: TruncateFaults(faults)}
	}
	if d.Info.Scheduled() && req.Firing == nil && req.Cell == nil && req.RerunOf == "" {
		return refused, &ScheduleError{
			Descriptor: d, Text: text, Digest: refused.Digest,
			Provenance: withoutCredentials(req.Provenance), Warnings: TruncateFaults(faults.Warnings()),
		}
	}
	if d.Sweep != nil {
		return refused, &SetError{
			Descriptor: d, Text: text, Digest: refused.Digest, Provenance: withoutCredentials(req.Provenance),
			Warnings: TruncateFaults(faults.Warnings()),
		}
	}
	return Submission{
		Submitted: event.Submitted{
			Header: header(req, run, at), Name: req.Name, File: req.File, Descriptor: string(text), Labels: MergeLabels(d, req.Labels),
			Overrides: req.Overrides, Provenance: withoutCredentials(req.Provenance), Bundle: scriptOf(req.Script), Use: useOf(d),
		},
		Original: originalOf(req.Descriptor, text),
		Digest:   refused.Digest,
		Warnings: TruncateFaults(faults.Warnings()),
	}, nil
}

// MergeLabels returns the labels of a descriptor with those of a request over them.
func MergeLabels(d *descriptors.Descriptor, over map[string]string) map[string]string {
	all := make(map[string]string, len(d.Info.Labels)+len(over))
	maps.Copy(all, d.Info.Labels)
	maps.Copy(all, over)
	return all
}

// header returns the header of the submission of a run.
func header(req Request, run string, at time.Time) event.Header {
	h := event.NewHeader(event.Derive("submitted", run), run, req.Namespace, req.Owner, at)
	h.RerunOf, h.Compares = strings.ToLower(req.RerunOf), req.Compares
	if req.Firing != nil {
		h.Schedule, h.Firing = req.Firing.Schedule, &req.Firing.Time
	}
	if c := req.Cell; c != nil {
		h.Set, h.Cell, h.Repetition, h.Warmup = c.Set, c.Cell, c.Repetition, c.Warmup
	}
	if req.Confirms != nil {
		h.Confirms, h.Nodes = req.Confirms.Incident, req.Confirms.Nodes
	}
	return h
}

// maxDescription is the maximum number of bytes of a description outside the
// descriptor.
const maxDescription = 1 << 10

// useOf returns the parts of a descriptor that describe the benchmark to people.
func useOf(d *descriptors.Descriptor) event.Use {
	u := event.Use{Description: d.Info.Description}
	if len(u.Description) > maxDescription {
		u.Description = strings.ToValidUTF8(u.Description[:maxDescription], "") + "…"
	}
	if d.ML != nil {
		u.Framework, u.FrameworkVersion = d.ML.Framework, d.ML.FrameworkVersion
	}
	sources := d.Data.Sources
	if d.Server != nil {
		sources = slices.Concat(sources, d.Server.Models)
	}
	for _, s := range sources {
		if s.ID != "" && !slices.Contains(u.DataIDs, s.ID) {
			u.DataIDs = append(u.DataIDs, s.ID)
		}
	}
	return u
}

// originalOf returns the text that was sent, or nil if the run has the same text.
func originalOf(sent, run []byte) *store.OriginalDescriptor {
	if string(sent) == string(run) {
		return nil
	}
	return &store.OriginalDescriptor{Descriptor: string(sent)}
}

// Parse parses a descriptor with p, with overrides applied, or a suite, of which it returns
// the descriptor of the first cell with the sweep of the suite. It returns the descriptor,
// the text after the overrides, and the faults.
func Parse(p parser.Parser, file string, text []byte, overrides []event.Override) (*descriptors.Descriptor, []byte, parser.Faults) {
	set := make([]parser.Override, len(overrides))
	for i, o := range overrides {
		set[i] = parser.Override(o)
	}
	return suite.ParseWith(p, cmp.Or(file, "descriptor.toml"), text, set)
}

// forRun returns the plan with the run ID and time of the first request under the same
// key.
func (p Submission) forRun(run string, at time.Time) Submission {
	h := p.Submitted.Header
	p.Submitted.Header = event.NewHeader(event.Derive("submitted", run), run, h.Namespace, h.Owner, at)
	p.Submitted.Lineage = h.Lineage
	return p
}

// digest returns a digest of the run that a request asks for. The descriptor's file and
// origin do not change it.
func digest(req Request, text []byte) string {
	parts := []string{"request", req.Namespace, req.Name, string(text)}
	for _, k := range slices.Sorted(maps.Keys(req.Labels)) {
		parts = append(parts, k, req.Labels[k])
	}
	if req.Script != "" {
		parts = append(parts, "\x00script", strings.ToLower(req.Script)) // no label has this key
	}
	if req.Compares != "" {
		parts = append(parts, "\x00compares", req.Compares)
	}
	return event.Derive(parts...)
}

// scriptOf returns the code with that digest, or nil for "".
func scriptOf(digest string) *event.Bundle {
	if digest == "" {
		return nil
	}
	return &event.Bundle{SHA256: strings.ToLower(digest)}
}

// checkScript returns the faults of the code that is sent along with a descriptor; d is
// nil if the descriptor has faults.
func checkScript(req Request, d *descriptors.Descriptor) parser.Faults {
	digest := req.Script
	sum, err := hex.DecodeString(digest)
	wanted := d != nil && d.ML != nil && d.ML.Script != nil
	switch {
	case digest == "" && wanted:
		return parser.Faults{{
			Path: "ml.script", Code: CodeScript,
			Message: fmt.Sprintf("the descriptor wants code to be sent along (%s), and none was", clip(d.ML.Script.Archive, maxIdentifier)),
			Remedy:  "send it along: baictl submit --script DIR; in a request, script_sha256",
		}}
	case digest != "" && (err != nil || len(sum) != sha256.Size):
		return parser.Faults{{
			Path: "script_sha256", Code: CodeScript, Message: quote(digest) + " is not the SHA-256 of anything",
			Remedy: "give its 64 digits of hex",
		}}
	}
	return nil
}

// checkSweep returns the fault of a descriptor with a sweep that the request does not allow;
// d is nil if the descriptor has faults.
func checkSweep(req Request, d *descriptors.Descriptor) parser.Faults {
	if d == nil || d.Sweep == nil || req.RerunOf == "" {
		return nil
	}
	return parser.Faults{{
		Path: "sweep", Code: CodeSweep, Message: "a set does not repeat a run",
		Remedy: "leave out rerun_of, or remove the table sweep",
	}}
}

// scriptNotFound returns the error for code that is not stored.
func scriptNotFound(digest string) error {
	return &InvalidError{Faults: parser.Faults{{
		Path: "script_sha256", Code: CodeScript, Message: fmt.Sprintf("the code with sha256 %s is not kept here, or not any more", digest),
		Remedy: "send it first: baictl submit --script DIR; over HTTP, PUT /v1/scripts/" + digest,
	}}}
}

// deriveKey returns the key of the document that maps an owner's idempotency key to a run.
func deriveKey(owner, key string) string { return event.Derive("key", owner, key) }

// keyOf returns deriveKey for a request. The firings of each schedule have keys of their
// own, and so have the runs of each set and of each confirmation.
func keyOf(req Request) string {
	if req.Cell != nil {
		return event.Derive("cell", req.Cell.Set, req.Key)
	}
	if req.Firing != nil {
		return event.Derive("firing", req.Firing.Schedule, req.Key)
	}
	if req.Confirms != nil {
		return event.Derive("confirmation", req.Confirms.Confirmation, req.Key)
	}
	return deriveKey(req.Owner, req.Key)
}

// nameKey returns the key of the document that maps a name of an owner's to a run.
func nameKey(owner, name string) string { return event.Derive("name", owner, name) }

// IsRunID reports whether s has the form of a run's ID, in upper or lower case.
func IsRunID(s string) bool {
	_, err := ulid.ParseStrict(s)
	return err == nil
}

// requestLabels returns the labels of a request that are checked. Those of a suite are among
// them: its descriptors do not have them, so that the request for each of its runs has. Those
// of a confirmation are not: they are all labels of a run that was accepted, and the
// platform's own. The descriptor d is nil if the text has faults.
func requestLabels(req Request, d *descriptors.Descriptor, text []byte) map[string]string {
	switch {
	case req.Confirms != nil:
		return nil
	case d != nil && suite.Is(text):
		return MergeLabels(d, req.Labels)
	}
	return req.Labels
}

// check returns the faults of a request, except those of its descriptor: d, or nil if the text
// has faults. The name of a scheduled request may be an ID; the name of a run may not.
func check(req Request, d *descriptors.Descriptor, text []byte) parser.Faults {
	var faults parser.Faults
	add := func(code, path, remedy, format string, args ...any) {
		faults = append(faults, parser.Fault{Path: path, Code: code, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if n := len(req.Key); n > maxKey {
		add(CodeKey, "idempotency_key", "", "has %d bytes, %d at most", n, maxKey)
	}
	if n := len(req.File); n > maxFile || strings.ContainsFunc(req.File, unicode.IsControl) {
		add(CodeFile, "descriptor_file", "", "has %d bytes, %d at most, none of them a control character", n, maxFile)
	}
	faults = append(faults, CheckOwner(req.Owner)...)
	faults = append(faults, CheckNamespace(req.Namespace)...)
	if req.Name != "" && !isIdentifier(req.Name, "-_.") {
		add(CodeName, "name", identifierRule(`"-", "_" and "."`), "%s is not the name of a run", quote(req.Name))
	}
	if IsRunID(req.Name) && (d == nil || !d.Info.Scheduled()) {
		add(CodeName, "name", "choose a name that is no ULID", "%s has the form of a run's ID", quote(req.Name))
	}
	return slices.Concat(faults, checkLabels(requestLabels(req, d, text)), checkSource(req))
}

// checkSource returns the faults of the origin, the overrides and the repeated run of a
// request.
func checkSource(req Request) parser.Faults {
	var faults parser.Faults
	if req.RerunOf != "" && !IsRunID(req.RerunOf) {
		faults = append(faults, parser.Fault{
			Path: "rerun_of", Code: CodeRerun, Message: quote(req.RerunOf) + " is not the ID of a run",
			Remedy: "give the 26 letters and digits of its ID",
		})
	}
	switch n := len(req.Compares); {
	case n > maxKey:
		faults = append(faults, parser.Fault{
			Path: "compares", Code: CodeRerun,
			Message: fmt.Sprintf("has %d bytes, %d at most", n, maxKey),
		})
	case n > 0 && req.RerunOf == "":
		faults = append(faults, parser.Fault{
			Path: "compares", Code: CodeRerun, Message: "the run of a comparison repeats another run",
			Remedy: "name that run in rerun_of",
		})
	}
	size := 0
	for _, o := range req.Overrides {
		size += len(o.Path) + len(o.Value)
	}
	if size > maxOverrideSize {
		faults = append(faults, parser.Fault{
			Path: "overrides", Code: CodeOverrides,
			Message: fmt.Sprintf("have %d bytes, %d at most", size, maxOverrideSize), Remedy: "write them into the descriptor",
		})
	}
	if o := req.Provenance; o != nil && !validProvenance(*o) {
		faults = append(faults, parser.Fault{
			Path: "origination", Code: CodeOrigin,
			Message: quote(o.URI) + " with digest " + quote(o.SHA256) + " is not where a descriptor comes from",
			Remedy:  "give a URL, or stored:NAME@VERSION, and the SHA-256 of its bytes in hex",
		})
	}
	return faults
}

// validProvenance reports whether o is a valid origin of a descriptor.
func validProvenance(o event.Provenance) bool {
	sum, err := hex.DecodeString(o.SHA256)
	if err != nil || len(sum) != sha256.Size || len(o.URI) > maxURI ||
		strings.ContainsFunc(o.URI, unicode.IsControl) || !utf8.ValidString(o.URI) {
		return false
	}
	u, err := url.Parse(o.URI)
	return err == nil && slices.Contains([]string{"stored", "https", "http", "s3"}, u.Scheme)
}

// withoutCredentials returns o without the parts that may be secret: a URL's user,
// query and fragment.
func withoutCredentials(o *event.Provenance) *event.Provenance {
	if o == nil {
		return nil
	}
	u, err := url.Parse(o.URI)
	if err != nil {
		return nil
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return &event.Provenance{URI: u.String(), SHA256: strings.ToLower(o.SHA256)}
}

// CheckNamespace returns the fault of a namespace, or nil.
func CheckNamespace(name string) parser.Faults {
	if isIdentifier(name, "-_.") {
		return nil
	}
	return parser.Faults{{
		Path: "namespace", Code: CodeNamespace, Message: quote(name) + " is not the name of a namespace",
		Remedy: identifierRule(`"-", "_" and "."`),
	}}
}

// CheckOwner returns the fault of an owner's name, or nil.
func CheckOwner(name string) parser.Faults {
	if isIdentifier(name, "-_.@") {
		return nil
	}
	return parser.Faults{{
		Path: "owner", Code: CodeOwner, Message: quote(name) + " is not the name of an owner",
		Remedy: identifierRule(`"-", "_", "." and "@"`),
	}}
}

// CheckName returns the fault of a name that a user gives, or nil.
func CheckName(name string) parser.Faults {
	if isIdentifier(name, "-_.") {
		return nil
	}
	return parser.Faults{{
		Path: "name", Code: CodeName, Message: quote(name) + " is not a name",
		Remedy: identifierRule(`"-", "_" and "."`),
	}}
}

// checkLabels returns the faults of a request's labels, in the order of their keys.
func checkLabels(labels map[string]string) parser.Faults {
	if n := len(labels); n > maxLabels {
		return parser.Faults{{
			Path: "labels", Code: CodeLabel, Message: fmt.Sprintf("%d labels, %d at most", n, maxLabels),
			Remedy: "remove some; of a suite, those in [suite.labels] and the label suite count as well",
		}}
	}
	var faults parser.Faults
	add := func(key, message, remedy string) {
		faults = append(faults, parser.Fault{Path: "labels." + clip(key, maxIdentifier), Code: CodeLabel, Message: message, Remedy: remedy})
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		switch {
		case isReservedLabel(key):
			add(key, fmt.Sprintf("%s would hide a label of the platform", quote(key)), "choose another key")
		case !isIdentifier(key, "-_."):
			add(key, fmt.Sprintf("%s is not the key of a label", quote(key)), identifierRule(`"-", "_" and "."`))
		case value != "" && !isIdentifier(value, "-_."):
			add(key, fmt.Sprintf("%s is not the value of a label", quote(value)),
				"leave it empty, or use "+identifierRule(`"-", "_" and "."`))
		}
	}
	return faults
}

// isReservedLabel reports whether the platform reserves a label's key for itself.
func isReservedLabel(key string) bool {
	domain, _, _ := strings.Cut(cluster.LabelRun, "/")
	return descriptors.ReservedLabel(key) || key == domain || strings.HasPrefix(key, domain+"/")
}

// isIdentifier reports whether s has 1 to maxIdentifier letters and digits. Except as
// the first and last character, s may also have characters of others.
func isIdentifier(s, others string) bool {
	if s == "" || len(s) > maxIdentifier {
		return false
	}
	for i, r := range s {
		inner := i > 0 && i < len(s)-1 && strings.ContainsRune(others, r)
		if !inner && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}

func identifierRule(others string) string {
	return fmt.Sprintf("1 to %d letters, digits, %s, the first and the last a letter or digit", maxIdentifier, others)
}

// quote returns s quoted and clipped, for a fault.
func quote(s string) string { return fmt.Sprintf("%q", clip(s, 2*maxIdentifier)) }

// TruncateFaults returns the first maxFaults faults, with clipped texts. If there are
// more, errors come before warnings.
func TruncateFaults(faults parser.Faults) parser.Faults {
	if len(faults) > maxFaults {
		faults = slices.Concat(faults.Errors(), faults.Warnings())[:maxFaults]
	}
	faults = slices.Clone(faults)
	for i, f := range faults {
		faults[i].Message, faults[i].Remedy, faults[i].Path = clip(f.Message, maxText), clip(f.Remedy, maxText), clip(f.Path, maxText)
	}
	return faults
}

// clip returns the first n bytes of s at most, without a partial character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
