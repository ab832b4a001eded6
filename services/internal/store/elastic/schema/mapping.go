package schema

import "maps"

// Version is that of the mappings below. Never change the meaning of a field:
// add one and raise the version. Documents of every earlier version stay readable.
const Version = 6

// Indices by name, without prefix and partition, in the order of the flow.
const (
	Docs      = "docs"
	Runs      = "runs"
	Status    = "status"
	Sources   = "sources"
	Metrics   = "metrics"
	Logs      = "logs"
	Results   = "results"
	Incidents = "incidents"
)

// MaxTerm is the most bytes that are searched by. Elasticsearch refuses a whole
// document for a term over 32,766 bytes.
const MaxTerm = 1024

// Field is one field of the documents of an index.
type Field struct {
	Name        string
	Type        string
	Description string // meaning, for people

	options map[string]any
}

// Index is one kind of index.
type Index struct {
	Name        string
	Description string // what a document is, and how its ID is made
	ByMonth     bool   // there is one index for each month of runs
	Fields      []Field
}

// sharded reports whether an index has samples or lines: its number of shards is a setting.
func (i Index) sharded() bool { return i.Name == Metrics || i.Name == Logs }

// Kinds of fields.

func keyword(name, description string) Field {
	return Field{Name: name, Type: "keyword", Description: description}
}

func number(name, kind, description string) Field {
	return Field{Name: name, Type: kind, Description: description}
}

func stamp(name, description string) Field {
	return Field{Name: name, Type: "date", Description: description}
}

func flag(name, description string) Field {
	return Field{Name: name, Type: "boolean", Description: description}
}

func labels(description string) Field {
	return Field{
		Name: "labels", Type: "flattened", Description: description + " One field for all keys: the mapping never grows.",
		options: map[string]any{"ignore_above": MaxTerm},
	}
}

// storedField is a field that is returned but never searched.
func storedField(name, description string) Field {
	return Field{Name: name, Type: "keyword", Description: description, options: map[string]any{"index": false, "doc_values": false}}
}

// storedObject is an object that is returned unchanged and never searched.
func storedObject(name, description string) Field {
	return Field{Name: name, Type: "object", Description: description, options: map[string]any{"enabled": false}}
}

// sortField is a number for comparing and sorting, beside a field for searching.
func sortField(name, kind, description string) Field {
	return Field{Name: name, Type: kind, Description: description, options: map[string]any{"index": false}}
}

// Indices returns all kinds of indices.
func Indices() []Index {
	return []Index{
		{Name: Docs, Description: "One document for each small document of a service, written by compare-and-set. ID: a digest of kind and key.", Fields: docFields()},
		{Name: Runs, Description: "One document for each run, as it stands now. ID: the run's.", Fields: runFields()},
		{
			Name: Status, ByMonth: true,
			Description: "One document for each thing that happened to a run. ID: a digest of the run's and the event's. The newest of a run may be in its document of runs only, for a moment.", Fields: statusFields(),
		},
		{
			Name: Sources, ByMonth: true,
			Description: "One document for each source of samples or lines, and one for its end. ID: the source's, the topic, and whether it is the end.", Fields: sourceFields(),
		},
		{
			Name: Metrics, ByMonth: true,
			Description: "One document for each sample. ID: made of the source, `seq`, `sub` and the metric's name.",
			Fields:      metricFields(),
		},
		{Name: Logs, ByMonth: true, Description: "One document for each line. ID: made of the source and `seq`.", Fields: logFields()},
		{
			Name: Results, ByMonth: true,
			Description: "One document for each point: the value of a run in one series, once its samples are summarised. ID: a digest of the run's and the ordinal. Since version 2; documents of versions before 5 are for dashboards only, until they are written again.", Fields: resultFields(),
		},
		{Name: Incidents, Description: "One document for each incident, for people who search: what the platform knows of it is in a document of kind `incident`. ID: a digest of namespace and incident. Since version 6; earlier incidents have one from their next change on.", Fields: incidentFields()},
	}
}

func docFields() []Field {
	return []Field{
		keyword("kind", "its subject"),
		keyword("key", "its name within the kind"),
		{Name: "version", Type: "long", Description: "counts writes, from 1", options: map[string]any{"index": false}},
		storedField("value", "JSON"),
		{Name: "bytes", Type: "binary", Description: "in place of `value`, if it is not text"},
	}
}

func runFields() []Field {
	return []Field{
		{Name: "@timestamp", Type: "date_nanos", Description: "when it was submitted"},
		keyword("run.id", "ULID, lower case"),
		keyword("run.name", "chosen by the user, unique for each owner"),
		keyword("run.namespace", "team"),
		keyword("run.owner", "user who submitted it"),
		keyword("run.file", "where the user read the descriptor"),
		keyword("run.task", "label `task_name`"),
		keyword("run.phase", "submitted, fetching, queued, launching, pending, running, canceling or finished"),
		keyword("run.outcome", "of a finished run: succeeded, failed or canceled"),
		keyword("run.class", "whose fault a failure is: user, infra, platform or timeout"),
		keyword("run.reason", "one word that a program can match"),
		{Name: "run.message", Type: "text", Description: "for people", options: map[string]any{"norms": false}},
		number("run.attempt", "integer", "the last"),
		number("run.exit_code", "integer", "of the benchmark"),
		number("run.revision", "long", "number of changes"),
		stamp("run.updated", "when the last change was published"),
		stamp("run.started", "when the benchmark's process began"),
		stamp("run.ended", "when the run came to its end"),
		number("run.duration", "double", "seconds from `run.started` to `run.ended`"),
		keyword("run.set", "the set that it belongs to"),
		keyword("run.cell", "of the set's sweep"),
		number("run.repetition", "integer", "of the cell"),
		flag("run.warmup", "it does not count"),
		keyword("run.schedule", "the schedule that fired"),
		stamp("run.firing", "when it fired"),
		keyword("run.rerun_of", "the run that it repeats"),
		labels("Of the descriptor and the request."),
		number("find.created", "long", "`@timestamp` in ns, also outside of its range"),
		keyword("find.begin", "prefixes for a search by text: ID, name and file, lower case, the first 1024 bytes"),
		keyword("find.task", "the task, lower case, for a search by text"),
		keyword("find.labels", "digest of each label's key and value, and of framework, its version, the IDs of data, set and cell"),
		storedObject("doc", "the whole run"),
		storedObject("change", "the whole of its newest change"),
	}
}

func statusFields() []Field {
	return []Field{
		{Name: "@timestamp", Type: "date_nanos", Description: "when it was published"},
		keyword("run.id", "of which run"),
		number("revision", "long", "of the run, once this had happened"),
		keyword("event.id", "of the event"),
		keyword("event.topic", "topic on which it was published"),
		keyword("run.phase", "of the run, once this had happened"),
		keyword("run.outcome", "of a run that finished"),
		keyword("run.class", "whose fault a failure is"),
		keyword("run.reason", "one word that a program can match"),
		{Name: "message", Type: "text", Description: "for people", options: map[string]any{"norms": false}},
		number("run.attempt", "integer", "of which attempt"),
		flag("late", "came after the end and changed nothing"),
		storedObject("doc", "the whole change"),
	}
}

// originFields returns the fields about the source of samples and lines.
func originFields() []Field {
	return []Field{
		keyword("run.id", "of which run"),
		number("run.attempt", "integer", "of which attempt"),
		keyword("source.id", "digest of all that follows, the run and the attempt; the routing too"),
		keyword("source.role", "benchmark, launcher, worker, server or client"),
		number("source.index", "integer", "of the pod within its role"),
		keyword("source.pod", "UID"),
		keyword("source.container", "name"),
		keyword("source.stream", "output, metrics or fifo"),
	}
}

func sourceFields() []Field {
	return append(originFields(),
		keyword("topic", "bai.metrics or bai.logs"),
		flag("ended", "this document says how the source ended"),
		storedObject("origin", "the source, whole"),
		storedObject("end", "how much the source brought"),
	)
}

// orderFields are the fields that order the documents of one source.
func orderFields() []Field {
	return []Field{
		sortField("seq", "long", "byte offset in the source"),
		number("place", "long", "first bits of the digest of the source, then `seq` as far as 40 bits go: finds the next documents of a source without reading earlier ones"),
		storedField("exact", "JSON of the whole, if the other fields cannot express it: names over 1024 bytes, odd labels, times before 1970"),
	}
}

func metricFields() []Field {
	fields := append([]Field{{Name: "@timestamp", Type: "date_nanos", Description: "when it was measured"}}, originFields()...)
	return append(append(fields, orderFields()...),
		sortField("sub", "integer", "which of several samples read from there"),
		keyword("metric.name", "of the metric"),
		number("metric.value", "double", "absent where `metric.special` is set"),
		keyword("metric.special", "NaN, +Inf or -Inf"),
		keyword("metric.unit", "as the descriptor or the benchmark says"),
		number("metric.step", "long", "the benchmark's own count"),
		keyword("metric.direction", "which values are better, as the descriptor says: higher or lower. Since version 4"),
		labels("Of the sample."),
	)
}

func logFields() []Field {
	fields := append([]Field{{Name: "@timestamp", Type: "date_nanos", Description: "when it was read"}}, originFields()...)
	return append(append(fields, orderFields()...),
		Field{Name: "message", Type: "text", Description: "the line", options: map[string]any{"norms": false}},
		Field{
			Name: "tokens", Type: "keyword",
			Description: "search words of the line: its runs of letters, digits and `_ . -`, lower case, and the parts of those that are joined. Lines of versions before 3 have none and are not found by them. Since version 3", options: map[string]any{"doc_values": false},
		},
		flag("log.error", "written to standard error"),
		flag("log.cut", "`message` ends early: the line was over the limit"),
		flag("log.open", "the benchmark ended without a line feed"),
		Field{
			Name: "log.raw", Type: "long", Description: "bytes that the benchmark wrote, where `message` is not all of them",
			options: map[string]any{"index": false, "doc_values": false},
		},
	)
}

func resultFields() []Field {
	fields := []Field{
		{Name: "@timestamp", Type: "date_nanos", Description: "when the run was submitted"},
		keyword("run.id", "of which run"),
		keyword("run.name", "chosen by the user"),
		keyword("run.namespace", "team"),
		keyword("run.owner", "user who submitted it"),
		keyword("run.task", "label `task_name`"),
		number("run.attempt", "integer", "attempt of the samples: the last"),
		keyword("run.outcome", "succeeded, failed or canceled, as far as it was known"),
		keyword("run.set", "the set that it belongs to"),
		keyword("run.cell", "of the set's sweep"),
		number("run.repetition", "integer", "of the cell"),
		flag("run.warmup", "it does not count"),
		keyword("run.schedule", "the schedule that fired"),
		keyword("run.version", "version of the benchmark: label `version`, else the digests of the images that ran"),
		labels("Of the descriptor and the request."),
		keyword("machine.name", "machines of the pods, in words: GPUs, CPUs, memory"),
		keyword("machine.fingerprint", "the same for machines whose numbers may be compared"),
		keyword("metric.name", "of the metric"),
		keyword("metric.unit", "as the descriptor or the benchmark says"),
		keyword("metric.direction", "which values are better, as the descriptor says: higher or lower. Since version 4"),
		{Name: "metric.labels", Type: "flattened", Description: "of the samples", options: map[string]any{"ignore_above": MaxTerm}},
		number("n", "long", "samples that are numbers or infinite"),
		flag("complete", "all samples were there"),
	}
	for _, name := range []string{"min", "max", "median", "p90", "p95", "p99", "mean", "sd", "first", "last"} {
		fields = append(fields, number("value."+name, "double", "of the samples; absent where it is not finite"))
	}
	return append(fields, number("value.low", "double", "end of the confidence interval of the median"),
		number("value.high", "double", "end of the confidence interval of the median"),
		keyword("find.series", "ID of the series; absent if the run is excluded from it. Since version 5"),
		number("find.time", "long", "time by which points are ordered, in ns. Since version 5"),
		number("find.ordinal", "integer", "number of the point among those of its run, from 0. Since version 5"),
		storedObject("doc", "the whole point, without what the points of its run have in common, which is in a document of kind `points`. A document with another revision than that is no point any more. Since version 5"),
	)
}

func incidentFields() []Field {
	return []Field{
		{Name: "@timestamp", Type: "date_nanos", Description: "when it was first seen"},
		keyword("incident.id", "as baictl shows it"),
		keyword("incident.state", "suspected, confirming, firing, acknowledged, resolved or dismissed"),
		flag("incident.over", "it is resolved or dismissed"),
		flag("incident.silent", "it lay too far back when it was first seen: it is in no notice"),
		keyword("incident.when", "condition of its alarm"),
		keyword("incident.cause", "regression, method, environment, noise or insufficient"),
		keyword("incident.kind", "of a change: step or drift"),
		keyword("incident.direction", "up or down"),
		keyword("incident.group", "ID that the incidents of one change have in common"),
		{Name: "incident.message", Type: "text", Description: "for people", options: map[string]any{"norms": false}},
		keyword("incident.notify", "receivers in its alarm"),
		keyword("incident.acked_by", "user who acknowledged it"),
		stamp("incident.since", "when it came into its state"),
		stamp("incident.updated", "when it last changed"),
		number("incident.lasted", "double", "seconds from `@timestamp` to its end"),
		keyword("run.id", "the first bad run"),
		keyword("run.namespace", "team"),
		keyword("run.task", "label `task_name`"),
		keyword("run.cell", "of a set's sweep"),
		keyword("run.version", "of the first bad run"),
		keyword("good.run", "the last good run"),
		keyword("good.version", "of the last good run"),
		keyword("metric.name", "of the metric"),
		keyword("metric.unit", "of the values"),
		labels("Of the series."),
		number("value.before", "double", "level before it, or the limit; absent where it is not finite"),
		number("value.after", "double", "level since then, or the value; absent where it is not finite"),
		number("value.magnitude", "double", "after / before - 1; absent where there is no change"),
	}
}

// mapping returns the mapping of an index in the form of Elasticsearch.
func (i Index) mapping() map[string]any {
	properties := make(map[string]any)
	for _, f := range i.Fields {
		leaf := map[string]any{"type": f.Type}
		maps.Copy(leaf, f.options)
		put(properties, f.Name, leaf)
	}
	return map[string]any{"dynamic": "strict", "_meta": map[string]any{"bai": map[string]any{"version": Version}}, "properties": properties}
}

// put puts a field at its dotted name.
func put(properties map[string]any, name string, leaf map[string]any) {
	for at := range len(name) {
		if name[at] != '.' {
			continue
		}
		parent, ok := properties[name[:at]].(map[string]any)
		if !ok {
			parent = map[string]any{"dynamic": "strict", "properties": make(map[string]any)}
			properties[name[:at]] = parent
		}
		if inner, ok := parent["properties"].(map[string]any); ok {
			put(inner, name[at+1:], leaf)
		}
		return
	}
	properties[name] = leaf
}
