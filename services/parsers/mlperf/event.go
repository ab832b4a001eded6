package mlperf

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// entry is a line of the log, of which the key was read.
type entry struct {
	version string
	key     string // empty for those that are not read
	at      string // the time in seconds, if it is not in the JSON
	json    []byte // an object with value and metadata; with the time as time_ms, if at is empty
	plain   bool   // json is the value alone
}

// known returns a key that is read. Others cost nothing but a look for their key.
func known(key []byte) string {
	for _, k := range [...]string{
		"init_start", "init_stop", "run_start", "run_stop", "eval_accuracy", "target_accuracy", "eval_target", "epoch_stop", "block_stop",
		trackedStats,
	} {
		if string(key) == k {
			return k
		}
	}
	return ""
}

// trackedStats is the key of lines that come often. Only the last one is read.
const trackedStats = "tracked_stats"

// cut finds the mark of MLPerf in a line, and the key behind it.
func cut(text []byte) (entry, bool) {
	_, rest, ok := bytes.Cut(text, []byte(":::ML"))
	if !ok {
		return entry{}, false
	}
	if object, ok := bytes.CutPrefix(rest, []byte("LOG ")); ok {
		return cutObject(bytes.TrimSpace(object))
	}
	if words, ok := bytes.CutPrefix(rest, []byte("L ")); ok {
		return cutOlder(words)
	}
	if words, ok := bytes.CutPrefix(rest, []byte("Pv")); ok {
		return cutOldest(words)
	}
	return entry{}, false
}

// cutObject reads {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "run_stop", "value": null, "metadata": {...}}.
func cutObject(object []byte) (entry, bool) {
	if len(object) == 0 || object[0] != '{' {
		return entry{}, false
	}
	_, rest, _ := bytes.Cut(object, []byte(`"key"`))
	rest = bytes.TrimLeft(rest, ": ")
	if len(rest) == 0 || rest[0] != '"' {
		return entry{}, false
	}
	key, _, _ := bytes.Cut(rest[1:], []byte(`"`))
	return entry{key: known(key), json: object}, true
}

// cutOlder reads the rest of ":::MLL 1561427727.375 run_stop: {"value": null, "metadata": {"status": "success"}}", of version 0.6.
func cutOlder(words []byte) (entry, bool) {
	at, rest, _ := bytes.Cut(words, []byte(" "))
	key, object, ok := bytes.Cut(rest, []byte(": "))
	return entry{key: known(key), at: string(at), json: bytes.TrimSpace(object)}, ok && len(at) > 0
}

// cutOldest reads the rest of ":::MLPv0.5.0 resnet 1541639380.25 (train.py:9) run_stop: {"success": true}".
func cutOldest(words []byte) (entry, bool) {
	version, rest, _ := bytes.Cut(words, []byte(" "))
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // the benchmark
	at, rest, _ := bytes.Cut(rest, []byte(" "))
	_, rest, ok := bytes.Cut(rest, []byte(") "))
	key, value, _ := bytes.Cut(rest, []byte(":"))
	l := entry{key: known(bytes.TrimSpace(key)), at: string(at), json: bytes.TrimSpace(value), plain: true}
	if len(version) < 10 {
		l.version = report.Clip(string(version))
	}
	return l, ok && len(at) > 0
}

// logEvent is a line of the log.
type logEvent struct {
	key      string
	at       int64 // nanoseconds since 1970
	value    json.RawMessage
	metadata map[string]json.RawMessage
}

// read reads a line.
func (l entry) read() (logEvent, bool) {
	if l.plain {
		at, ok := instant(l.at, 9)
		return logEvent{key: l.key, at: at, value: l.json}, ok
	}
	var o struct {
		TimeMS   json.RawMessage            `json:"time_ms"`
		Value    json.RawMessage            `json:"value"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(l.json, &o) != nil {
		return logEvent{}, false
	}
	at, ok := instant(strings.Trim(string(o.TimeMS), `"`), 6)
	if l.at != "" {
		at, ok = instant(l.at, 9)
	}
	return logEvent{key: l.key, at: at, value: o.Value, metadata: o.Metadata}, ok
}

// instant returns the nanoseconds of a time. Its unit is 10 to the power of digits nanoseconds.
func instant(text string, digits int) (int64, bool) {
	whole, part, _ := strings.Cut(text, ".")
	if len(whole)+digits > 19 || len(part) > 20 {
		return 0, false
	}
	part = (part + strings.Repeat("0", digits))[:digits]
	ns, err := strconv.ParseUint(whole+part, 10, 63)
	return int64(ns), err == nil && ns > 0 && whole != ""
}

// number reads a number, which some versions print as a text.
func number(raw json.RawMessage) (float64, bool) {
	return report.Number(strings.Trim(string(raw), `"`))
}

// word reads a text.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return report.Clip(s)
}

// object reads an object. It is nil for other values.
func object(raw json.RawMessage) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}
