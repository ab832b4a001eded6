package archive

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Bounds of an import.
const (
	maxFiles     = 20_000
	maxDocuments = 64 << 20 // bytes of all documents together
	maxLine      = 8 << 20  // bytes in one row of samples or lines
)

// check returns the first fault of an import's first message.
func (b Begin) check() error {
	switch {
	case b.Format > Format:
		return &PreconditionError{Message: fmt.Sprintf("the export is of format %d, and this platform reads up to %d: import it into a platform that is at least as new as the one that it comes from", b.Format, Format)}
	case b.Format < 1:
		return fault(fileRun, 0, "format %d: want 1 or more", b.Format)
	case !submit.IsRunID(b.Run) || strings.ToLower(b.Run) != b.Run:
		return fault(fileRun, 0, "run %.100q is not the ID of a run", b.Run)
	case len(b.Files) > maxFiles:
		return fault(fileRun, 0, "%d files, %d at most", len(b.Files), maxFiles)
	}
	seen := make(map[string]bool)
	for _, f := range b.Files {
		if err := checkName(f.Name); err != nil {
			return err
		}
		if seen[f.Name] || f.Size < 0 || len(f.SHA256) != 64 {
			return fault(f.Name, 0, "is named twice, or without a size and a digest")
		}
		seen[f.Name] = true
	}
	size := int64(0)
	for _, f := range b.documents() {
		if size += f.Size; size > maxDocuments || f.Size > maxDocuments {
			return fault(f.Name, 0, "the documents of the run have more than %d bytes together", maxDocuments)
		}
	}
	for _, name := range []string{fileRun, fileSubmitted, fileEvents, fileSources, fileArtifacts, fileSamples, fileLines} {
		if !seen[name] {
			return fault(name, 0, "is not there: every run has one")
		}
	}
	return nil
}

// documents returns the documents among the files.
func (b Begin) documents() []File {
	return slices.DeleteFunc(slices.Clone(b.Files), func(f File) bool { return !isDocument(f.Name) })
}

// importedRun is the content of the documents of an import.
type importedRun struct {
	run         store.Run
	original    string
	events      []store.Change
	sources     []sourceRow
	files       []artifact.File
	manifests   map[string]string // by store.AttemptKey
	environment *store.RunEnvironment
	summaries   *store.Summaries
}

// readDocuments reads the documents of an import, by name, and checks that they fit
// together; files has all files of the import.
func readDocuments(id string, documents map[string][]byte, files []File) (b importedRun, err error) {
	b.manifests = make(map[string]string)
	for _, step := range []func() error{
		func() error { return readDocument(fileRun, documents[fileRun], &b.run) },
		func() error { b.events, err = readLines[store.Change](fileEvents, documents[fileEvents]); return err },
		func() error { b.sources, err = readLines[sourceRow](fileSources, documents[fileSources]); return err },
		func() error { b.files, err = readIndex(documents[fileArtifacts]); return err },
		func() error { return b.readResults(id, documents) },
		func() error { return b.readTexts(id, documents) },
		func() error { return b.checkRun(id) },
		b.checkEvents,
		func() error { return b.checkSources(id) },
		func() error { return b.checkFiles(files) },
	} {
		if err := step(); err != nil {
			return importedRun{}, err
		}
	}
	return b, nil
}

// readResults reads the optional documents: environment and summaries.
func (b *importedRun) readResults(id string, documents map[string][]byte) error {
	if text, ok := documents[fileEnvironment]; ok {
		b.environment = new(store.RunEnvironment)
		if err := readDocument(fileEnvironment, text, b.environment); err != nil {
			return err
		}
		for _, p := range b.environment.Pods {
			if p.Origin.Run != id {
				return fault(fileEnvironment, 0, "a pod is of run %.100q, not of %s", p.Origin.Run, id)
			}
		}
	}
	if text, ok := documents[fileSummaries]; ok {
		b.summaries = new(store.Summaries)
		if err := readDocument(fileSummaries, text, b.summaries); err != nil {
			return err
		}
		if b.summaries.Run != id {
			return fault(fileSummaries, 0, "they are of run %.100q, not of %s", b.summaries.Run, id)
		}
	}
	return nil
}

// readTexts reads the descriptor as it was submitted, and the manifests.
func (b *importedRun) readTexts(id string, documents map[string][]byte) error {
	b.original = string(documents[fileSubmitted])
	for name, text := range documents {
		if !utf8.Valid(text) {
			return fault(name, 0, "is not UTF-8")
		}
		attempt, ok := attemptOf(name)
		if !ok {
			continue
		}
		if attempt > b.run.Attempt {
			return fault(name, 0, "the run has %d attempts", b.run.Attempt)
		}
		if err := checkManifest(name, string(text)); err != nil {
			return err
		}
		b.manifests[store.AttemptKey(id, attempt)] = string(text)
	}
	if len(b.original) > parser.MaxSize {
		return fault(fileSubmitted, 0, "has %d bytes, %d at most", len(b.original), parser.MaxSize)
	}
	return nil
}

// checkManifest returns the fault of the objects of an attempt, or nil.
func checkManifest(name, text string) error {
	for n, one := range strings.Split(text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(one), &object); err != nil {
			return fault(name, 0, "document %d: %v", n+1, err)
		}
		if object["kind"] == "Secret" && (object["data"] != nil || object["stringData"] != nil) {
			return fault(name, 0, "document %d is a Secret with values: no platform exports these, and none takes them", n+1)
		}
	}
	return nil
}

// readIndex reads the list of artifacts from fileArtifacts.
func readIndex(text []byte) ([]artifact.File, error) {
	all, err := readLines[artifactRow](fileArtifacts, text)
	if err != nil {
		return nil, err
	}
	files := make([]artifact.File, len(all))
	for i, k := range all {
		at, err := time.Parse(time.RFC3339Nano, k.Time)
		if err != nil {
			return nil, fault(fileArtifacts, i+1, "time %.100q is not one in RFC 3339", k.Time)
		}
		if err := artifact.CheckName(k.Name); err != nil {
			return nil, fault(fileArtifacts, i+1, "%v", err)
		}
		files[i] = artifact.File{Name: k.Name, Size: k.Size, SHA256: k.SHA256, Time: at.UTC()}
	}
	return files, nil
}

// checkRun returns the fault of the run itself, or nil.
func (b *importedRun) checkRun(id string) error {
	r := b.run
	refuse := func(format string, args ...any) error { return fault(fileRun, 0, format, args...) }
	faults := append(submit.CheckOwner(r.Owner), submit.CheckNamespace(r.Namespace)...)
	if r.Name != "" {
		faults = append(faults, submit.CheckName(r.Name)...)
	}
	switch {
	case r.ID != id:
		return refuse("it is run %.100q, not %s", r.ID, id)
	case r.Phase != event.PhaseFinished:
		return &PreconditionError{Message: fmt.Sprintf("run %s was not over when it was exported (%.100s): export it again once it is", id,
			r.Phase)}
	case r.Outcome != event.Succeeded && r.Outcome != event.Failed && r.Outcome != event.Canceled:
		return refuse("outcome %.100q is none", r.Outcome)
	case r.Attempt < 1 || r.Attempt > 1000:
		return refuse("attempt %d: want 1 to 1000", r.Attempt)
	case r.Created.IsZero() || r.Ended == nil:
		return refuse("when it was submitted or ended is missing")
	case r.Descriptor == "" || len(r.Descriptor) > parser.MaxSize:
		return refuse("the descriptor has %d bytes: want 1 to %d", len(r.Descriptor), parser.MaxSize)
	case r.Revision != int64(len(b.events)):
		return refuse("revision %d, and %s has %d lines", r.Revision, fileEvents, len(b.events))
	case len(faults) > 0:
		return refuse("%s: %s", faults[0].Path, faults[0].Message)
	}
	return nil
}

// checkEvents returns the fault of the history, or nil.
func (b *importedRun) checkEvents() error {
	seen := make(map[string]bool)
	for i, c := range b.events {
		switch {
		case c.Run != b.run.ID:
			return fault(fileEvents, i+1, "it is of run %.100q, not of %s", c.Run, b.run.ID)
		case c.Revision != int64(i+1):
			return fault(fileEvents, i+1, "revision %d: want %d", c.Revision, i+1)
		case c.Event == "" || seen[c.Event]:
			return fault(fileEvents, i+1, "event %.100q has no ID of its own", c.Event)
		}
		seen[c.Event] = true
	}
	return nil
}

// checkSources returns the fault of the list of streams, or nil.
func (b *importedRun) checkSources(id string) error {
	seen := make(map[string]bool)
	for i, s := range b.sources {
		o := s.origin(id)
		key := o.StreamID() + s.Topic
		switch {
		case s.Topic != event.TopicMetrics && s.Topic != event.TopicLogs:
			return fault(fileSources, i+1, "topic %.100q: want %s or %s", s.Topic, event.TopicMetrics, event.TopicLogs)
		case o.Validate() != nil:
			return fault(fileSources, i+1, "%v", o.Validate())
		case seen[key] || s.Stored < 0:
			return fault(fileSources, i+1, "it is there twice, or has brought less than nothing")
		}
		seen[key] = true
	}
	return nil
}

// checkFiles returns a fault if the artifacts differ from the list of artifacts.
func (b *importedRun) checkFiles(files []File) error {
	received := make(map[string]File)
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Name, artifacts); ok {
			received[name] = f
		}
	}
	for i, f := range b.files {
		have, ok := received[f.Name]
		if !ok || have.Size != f.Size || have.SHA256 != f.SHA256 {
			return fault(fileArtifacts, i+1, "%q is not there as it is said to be, or twice", f.Name)
		}
		delete(received, f.Name)
	}
	for name := range received {
		return fault(artifacts+name, 0, "is not in %s", fileArtifacts)
	}
	return nil
}
