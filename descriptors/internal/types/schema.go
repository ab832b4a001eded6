package types

import (
	"regexp"
	"strings"
)

// Patterns of the JSON Schema: each matches the values that a function here accepts, as
// far as every dialect of regular expressions can express it.
const (
	labelPattern     = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	domainPattern    = `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`
	variablePattern  = `[-A-Za-z_.][-A-Za-z0-9_.]*`
	secretKeyPattern = `([-A-Za-z0-9_]|\.[-A-Za-z0-9_]|\.\.[-A-Za-z0-9_.])[-A-Za-z0-9_.]*`
	numberPattern    = `([0-9]+\.?[0-9]*|\.[0-9]+)`
	sizePattern      = `^` + numberPattern + ` ?(k|[KMGTP]i?)?B?$`
	durationPattern  = `^([0-9]+d)?(` + numberPattern + `(h|m|s|ms))*0?$`
	dnsLabelPattern  = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	resourcePattern  = `(cpu|memory|ephemeral-storage|hugepages-(1|2|4|8|16|32|64|128|256|512)[KMG]i|` +
		domainPattern + `/` + labelPattern + `)`
	amountPattern = `^` + numberPattern + ` ?(m|(k|[KMGTP]i?)?B?)$`
	noControl     = `[^\x00-\x1f\x7f-\x9f]`
)

// schema is a part of a JSON Schema.
type schema = map[string]any

// matching is a string that matches a pattern.
func matching(pattern string) schema { return schema{"type": "string", "pattern": pattern} }

func integer(low, high int64) schema {
	return schema{"type": "integer", "minimum": low, "maximum": high}
}

// mapping is a table whose keys match a pattern and whose values follow a schema.
func mapping(keys string, value schema) schema {
	return schema{"type": "object", "propertyNames": schema{"pattern": "^" + keys + "$"}, "additionalProperties": value}
}

// Schemas are the JSON Schemas of the types. A type refuses every value that its schema
// refuses.
func Schemas() map[string]map[string]any {
	labelValue := matching(`^(` + labelPattern + `)?$`)
	labels := mapping(labelPattern, labelValue)
	labels["propertyNames"] = schema{"pattern": "^" + labelPattern + "$", "not": schema{"pattern": reserved()}}
	loopback := matching(
		`^[Hh][Tt][Tt][Pp]://(127\.0\.0\.1|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]|\[::1\])(:[0-9]{1,5})?([/?#][^\s\x00-\x1f\x7f-\x9f]*)?$`)
	path := schema{"type": "string", "pattern": `^/` + noControl + `*$`, "not": schema{"pattern": `(^|/)\.\.(/|$)`}}
	secret := matching(`^` + domainPattern + `/` + secretKeyPattern + `$`)
	resources := mapping(resourcePattern, schema{"anyOf": []any{schema{"type": "number", "minimum": 0}, matching(amountPattern)}})
	resources["maxProperties"] = maxResources
	resources["propertyNames"] = schema{"pattern": "^" + resourcePattern + "$", "not": schema{"pattern": `kubernetes\.io/|^requests\.`}}
	secretFiles := schema{
		"type": "object", "additionalProperties": secret, "maxProperties": maxSecretFiles,
		"propertyNames": schema{"pattern": `^/[^:\x00-\x1f\x7f-\x9f]*[^/:\x00-\x1f\x7f-\x9f]$`, "not": schema{"pattern": `(^|/)\.\.(/|$)`}},
	}
	return map[string]schema{
		"line":             matching(`^` + noControl + `*$`),
		"metric name":      {"type": "string", "pattern": `^` + noControl + `+$`, "maxLength": 128},
		"name":             matching(`^` + labelPattern + `$`),
		"label value":      labelValue,
		"task name":        labelValue,
		"label key":        matching(`^(` + domainPattern + `/)?` + labelPattern + `$`),
		"topology":         matching(`^(` + domainPattern + `/)?` + labelPattern + `$`),
		"object name":      {"type": "string", "pattern": `^` + domainPattern + `$`, "maxLength": 253},
		"resource":         matching(`^` + domainPattern + `/` + labelPattern + `$`),
		"image":            matching(`^[!-~]+$`),
		"tar":              matching(`^[^\n\r]+\.tar$`),
		"labels":           labels,
		"node labels":      mapping(`(`+domainPattern+`/)?`+labelPattern, labelValue),
		"variables":        mapping(variablePattern, schema{"type": "string"}),
		"columns":          mapping(`[a-z_][a-z0-9_]{0,62}`, schema{"type": "string"}),
		"metric paths":     mapping(noControl+`{1,128}`, schema{"type": "string", "minLength": 1}),
		"secrets":          mapping(variablePattern, secret),
		"repetitions":      integer(1, maxRepetitions),
		"warm-up runs":     integer(0, maxRepetitions),
		"parallel runs":    integer(0, maxParallel),
		"seed":             {"type": "integer"},
		"percentage":       matching(`^` + numberPattern + `%$`),
		"most repetitions": integer(minStopMax, maxRepetitions),
		"axes": {
			"type": "object", "propertyNames": varied(), "additionalProperties": schema{"type": "array", "minItems": 1},
		},
		"rows":       {"type": "array", "minItems": 1, "items": schema{"type": "object", "propertyNames": varied()}},
		"gpus":       integer(0, maxGPUs),
		"seconds":    integer(0, maxSeconds),
		"count":      integer(1, maxSeconds),
		"port":       integer(1, maxPort),
		"retries":    integer(0, maxRetries),
		"history":    integer(1, maxHistory),
		"switch":     {"type": "boolean"},
		"ports":      {"type": "array", "items": integer(1, maxPort), "minItems": 1, "uniqueItems": true},
		"cpus":       {"anyOf": []any{schema{"type": "number", "exclusiveMinimum": 0}, matching(`^` + numberPattern + ` ?m?$`)}},
		"scheme":     matching(`^[Hh][Tt][Tt][Pp][Ss]?$`),
		"memory":     matching(sizePattern),
		"size":       {"anyOf": []any{schema{"type": "integer", "minimum": 0}, matching(sizePattern)}},
		"source":     matching(`^(` + folded("file") + `:///.*|(` + strings.Join(remote(), "|") + `)://[^/?#@]*([/?#].*)?)$`),
		"path":       path,
		"mount path": {"type": "string", "pattern": `^/[^:\x00-\x1f\x7f-\x9f]*$`, "not": schema{"pattern": `(^|/)\.\.(/|$)`}},
		"http path":  matching(`^[^\s\x00-\x1f\x7f-\x9f]*$`),
		"md5":        matching(`^[0-9A-Fa-f]{32}$`),
		"sha256":     matching(`^[0-9A-Fa-f]{64}$`),
		"pattern":    {"type": "string", "minLength": 1},
		"loopback": {"anyOf": []any{loopback, schema{
			"type": "array", "items": loopback, "maxItems": maxLoopbacks,
			"uniqueItems": true,
		}}},
		"every":        {"anyOf": []any{schema{"type": "boolean"}, Span()}},
		"block lines":  integer(1, maxBlock),
		"spec version": matching(`^0*(0\.0*1|1\.0+)(\.[0-9]+)?$`),
		"schedule":     matching(`^\s*(single_run|@[A-Za-z]+|\S+(\s+\S+){4})\s*$`),
		"time zone":    {"type": "string", "enum": anyOf(strings.Fields(zones))},
		"duration":     Span(),
		"moment":       matching(`^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.*)?$`),
		"command":      {"type": "string"},
		"secret files": secretFiles,
		"code":         {"type": "string"},

		"role":          matching(rolePattern),
		"roles":         {"type": "array", "items": matching(rolePattern)},
		"port and path": matching(portAndPathPattern),
		"step":          matching(rolePattern),
		"steps":         {"type": "array", "items": matching(rolePattern)},

		"share":       matching(`^` + numberPattern + `%$`),
		"limit":       {"type": "number"},
		"consecutive": integer(1, maxConsecutive), "pairs": integer(minPairs, maxPairs),
		"confirmation runs": integer(2*minPairs, maxConfirmations),
		"baseline":          matching(baselinePattern),
		"cost metrics": {
			"type": "array", "items": schema{"type": "string", "minLength": 1, "maxLength": longestMetric}, "minItems": 1,
			"maxItems": maxPer, "uniqueItems": true,
		},
		"price":     matching(`^[0-9]{1,9}(\.[0-9]{1,9})? [A-Z]{3}$`),
		"receivers": {"type": "array", "items": matching(`^` + labelPattern + `$`), "minItems": 1, "uniqueItems": true},

		"attachment": matching(`^(` + dnsLabelPattern + `/)?` + domainPattern + `$`),
		"mtu":        integer(minMTU, maxMTU),
		"manifest":   {"type": "string"},
		"pod selector": {"anyOf": []any{
			schema{"type": "string", "pattern": `\$\(BAI_OBJECTS\)`},
			schema{"type": "object", "additionalProperties": schema{"type": "string"}, "minProperties": 1},
		}},
		"copies":    integer(1, maxCopies),
		"condition": matching(`^(condition=[^= {}|]+|jsonpath=\{\..+\}=.+)$`),
		"devices":   integer(1, maxDevices),
		"high port": integer(minHighPort, maxPort),
		"resources": resources,
	}
}

// Span is the schema of a span of time.
func Span() map[string]any {
	return schema{"type": "string", "pattern": durationPattern, "minLength": 2}
}

// remote are the URL schemes of other machines.
func remote() []string {
	var all []string
	for _, scheme := range schemes() {
		if scheme != "file" {
			all = append(all, folded(scheme))
		}
	}
	return all
}

// reserved matches the labels that are ours.
func reserved() string {
	names := []string{folded("bai") + `([-_.].*)?`}
	for _, name := range Reserved() {
		names = append(names, folded(name))
	}
	return `^(` + strings.Join(names, "|") + `)$`
}

// folded matches word in any case.
func folded(word string) string {
	var s strings.Builder
	for _, c := range word {
		upper, lower := strings.ToUpper(string(c)), strings.ToLower(string(c))
		if upper == lower {
			s.WriteString(regexp.QuoteMeta(lower))
			continue
		}
		s.WriteString("[" + upper + lower + "]")
	}
	return s.String()
}

func anyOf(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}

// varied is a name in a sweep: a parameter, or a path, which has a dot.
func varied() schema { return schema{"pattern": `^` + parameterPattern + `$|\.`} }
