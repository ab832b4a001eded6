// Package schema has the tables of the file that package sqlite keeps, in all of their versions.
package schema

// ApplicationID marks the file as a store of the platform: "bai1".
const ApplicationID = 0x62616931

// Statements returns the statements that make a file of version n+1 from one of version n. Never change an entry: append one, and keep
// older files readable.
func Statements() []string {
	return []string{`
CREATE TABLE store(id TEXT NOT NULL);
INSERT INTO store VALUES (lower(hex(randomblob(8))));

CREATE TABLE docs(
	kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL,
	PRIMARY KEY (kind, key)) WITHOUT ROWID;

-- One row for each run. doc is the whole of it; the other columns are for finding it.
CREATE TABLE runs(
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, created INTEGER NOT NULL,
	owner TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL, outcome TEXT NOT NULL,
	labels TEXT NOT NULL, doc BLOB NOT NULL);
CREATE INDEX runs_created ON runs(created DESC, id DESC);
CREATE INDEX runs_owner ON runs(owner, created DESC, id DESC);
CREATE INDEX runs_namespace ON runs(namespace, created DESC, id DESC);
CREATE INDEX runs_name ON runs(name, created DESC, id DESC);
CREATE INDEX runs_phase ON runs(phase, created DESC, id DESC);
CREATE INDEX runs_outcome ON runs(outcome, created DESC, id DESC);
CREATE TABLE labels(
	key TEXT NOT NULL, value TEXT NOT NULL, created INTEGER NOT NULL, id TEXT NOT NULL,
	PRIMARY KEY (key, value, created DESC, id DESC)) WITHOUT ROWID;
CREATE TABLE changes(
	run INTEGER NOT NULL, revision INTEGER NOT NULL, event TEXT NOT NULL, doc BLOB NOT NULL,
	PRIMARY KEY (run, revision)) WITHOUT ROWID;
CREATE UNIQUE INDEX changes_event ON changes(run, event);

-- Where samples and lines come from, and how much of each is there. Rows of
-- samples and lines name their source, metric and traits by number.
CREATE TABLE sources(
	n INTEGER PRIMARY KEY, run TEXT NOT NULL, attempt INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
	role TEXT NOT NULL, idx INTEGER NOT NULL, pod TEXT NOT NULL, container TEXT NOT NULL, stream TEXT NOT NULL);
CREATE INDEX sources_run ON sources(run, attempt, id);
CREATE TABLE streams(
	source INTEGER NOT NULL, topic TEXT NOT NULL, stored INTEGER NOT NULL, last INTEGER NOT NULL, ended TEXT,
	PRIMARY KEY (source, topic)) WITHOUT ROWID;
CREATE TABLE names(n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE traits(n INTEGER PRIMARY KEY, unit TEXT NOT NULL, labels TEXT NOT NULL, UNIQUE (unit, labels));
CREATE TABLE samples(
	source INTEGER NOT NULL, seq INTEGER NOT NULL, sub INTEGER NOT NULL, name INTEGER NOT NULL, traits INTEGER NOT NULL,
	value REAL, special TEXT, time INTEGER NOT NULL, step INTEGER,
	PRIMARY KEY (source, seq, sub, name)) WITHOUT ROWID;
CREATE TABLE lines(
	source INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, raw INTEGER NOT NULL, flags INTEGER NOT NULL, text TEXT NOT NULL,
	PRIMARY KEY (source, seq)) WITHOUT ROWID;
`, `
-- What a run is found by where text is asked for, in lower case.
ALTER TABLE runs ADD COLUMN low_id BLOB NOT NULL DEFAULT x'';
ALTER TABLE runs ADD COLUMN low_name BLOB NOT NULL DEFAULT x'';
ALTER TABLE runs ADD COLUMN low_file BLOB NOT NULL DEFAULT x'';
ALTER TABLE runs ADD COLUMN low_task BLOB NOT NULL DEFAULT x'';
UPDATE runs SET low_id = CAST(lower(id) AS BLOB), low_name = CAST(lower(name) AS BLOB),
	low_file = CAST(lower(coalesce(json_extract(CAST(doc AS TEXT), '$.file'), '')) AS BLOB),
	low_task = CAST(lower(coalesce(json_extract(CAST(doc AS TEXT), '$.labels.task_name'), '')) AS BLOB);
`, `
-- Samples lie in chunks: see chunk.go.
CREATE TABLE chunks(
	n INTEGER PRIMARY KEY, source INTEGER NOT NULL,
	first_seq INTEGER NOT NULL, first_sub INTEGER NOT NULL, first_name TEXT NOT NULL,
	last_seq INTEGER NOT NULL, last_sub INTEGER NOT NULL, last_name TEXT NOT NULL,
	stored INTEGER NOT NULL, chunk BLOB NOT NULL);
CREATE UNIQUE INDEX chunks_last ON chunks(source, last_seq, last_sub, last_name);
`, `
-- The schedule that a run is a firing of; most are of none.
ALTER TABLE runs ADD COLUMN schedule TEXT NOT NULL DEFAULT '';
UPDATE runs SET schedule = coalesce(json_extract(CAST(doc AS TEXT), '$.schedule'), '');
CREATE INDEX runs_schedule ON runs(schedule, created DESC, id DESC) WHERE schedule <> '';
`, `
-- Which tokens the lines of a stretch of a source have. Of lines that are older
-- it is not known: they are looked at one by one.
CREATE TABLE stretches(
	n INTEGER PRIMARY KEY, source INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, lines INTEGER NOT NULL, marks BLOB);
CREATE INDEX stretches_last ON stretches(source, last);
INSERT INTO stretches(source, first, last, lines) SELECT source, 0, last, stored FROM streams WHERE topic = 'bai.logs' AND last >= 0;
`, `
-- The values of runs in series. A series has its number of points that count, and a run the numbers of its series, as JSON, in the order
-- of its points. The rows of a series lie beside each other, in the order of its points; those of runs that are excluded lie apart.
CREATE TABLE series(
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, task TEXT NOT NULL, metric TEXT NOT NULL,
	points INTEGER NOT NULL, doc BLOB NOT NULL);
CREATE INDEX series_name ON series(namespace, task, metric, id);
CREATE TABLE pointruns(
	n INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, counts INTEGER NOT NULL, time INTEGER NOT NULL, series TEXT NOT NULL, doc BLOB NOT NULL);
CREATE TABLE points(
	series INTEGER NOT NULL, counts INTEGER NOT NULL, time INTEGER NOT NULL, run TEXT NOT NULL, value BLOB NOT NULL,
	PRIMARY KEY (series, counts, time, run)) WITHOUT ROWID;
`}
}
