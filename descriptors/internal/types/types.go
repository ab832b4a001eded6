// Package types has the value types of the descriptor language: the rule for each, and
// how it is read.
package types

import (
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// All are the kinds by the names that the tags of the language use.
func All() decode.ValueTypes {
	kinds := decode.ValueTypes{}
	for _, some := range []decode.ValueTypes{
		texts(), names(), numbers(), tables(), times(), sources(), commands(), secretRefs(), sweeps(),
		roles(), steps(), resources(), alarms(), costs(), manifests(),
	} {
		maps.Copy(kinds, some)
	}
	return kinds
}

// text is a type of strings; read returns nil if it reported a fault.
func text(rule string, read func(v decode.Value, s string) any) decode.ValueType {
	return decode.ValueType{Type: "string", Rule: rule, Read: func(v decode.Value) any {
		if s, ok := v.String(); ok {
			return read(v, s)
		}
		return nil
	}}
}

// texts are words and lines that people read.
func texts() decode.ValueTypes {
	return decode.ValueTypes{
		"line": text("one line", func(v decode.Value, s string) any {
			return line(v, s, 0)
		}),
		"metric name": text("one line of 1 to 128 characters, 256 bytes at most", func(v decode.Value, s string) any {
			switch {
			case strings.TrimSpace(s) == "":
				v.Fault(fault.BadText, "is empty", "give the metric a name")
				return nil
			case strings.TrimSpace(s) != s:
				v.Fault(fault.BadText, "begins or ends with a blank", fmt.Sprintf("write %q", strings.TrimSpace(s)))
				return nil
			}
			return metricName(v, s)
		}),
	}
}

const (
	longestMetric   = 128 // characters of a metric's name
	mostMetricBytes = 256 // of the same in UTF-8
)

// metricName is s where it is one line that is not too long for a metric's name.
func metricName(v decode.Value, s string) any {
	if len([]rune(s)) <= longestMetric && len(s) > mostMetricBytes {
		v.Fault(fault.BadText, fmt.Sprintf("has %d bytes in UTF-8, %d at most are taken", len(s), mostMetricBytes), "shorten the name")
		return nil
	}
	return line(v, s, longestMetric)
}

// line is s where it is one line of at most most characters; 0 for any number.
func line(v decode.Value, s string, most int) any {
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		v.FaultAt(v.Inside(i), fault.BadText, "holds a line's end or another control character", "leave it out")
		return nil
	}
	if most > 0 && len([]rune(s)) > most {
		v.Fault(fault.BadText, fmt.Sprintf("has %d characters, %d at most are taken", len([]rune(s)), most), "")
		return nil
	}
	return s
}

const longest = 63 // characters of a label's value

func names() decode.ValueTypes {
	return decode.ValueTypes{
		"name": text("1 to 63 letters, digits, `-`, `_` and `.`, the first and last a letter or digit", func(v decode.Value, s string) any {
			return checkName(v, s, fault.BadName, isLabel(s))
		}),
		"task name": text("empty, or as a label's value", func(v decode.Value, s string) any {
			return checkName(v, s, fault.BadLabel, s == "" || isLabel(s))
		}),
		"label value": text("empty, or as a label's value", func(v decode.Value, s string) any {
			return checkName(v, s, fault.BadLabel, s == "" || isLabel(s))
		}),
		"label key": text("the key of a taint", func(v decode.Value, s string) any {
			return checkName(v, s, fault.BadToleration, isQualified(s))
		}),
		"topology": text("`zone`, or the key of a label of nodes", func(v decode.Value, s string) any {
			if !isQualified(s) {
				v.Fault(fault.BadLabel, fmt.Sprintf("%q is not the key of a label", s), "write zone, or the key as name or domain/name")
				return nil
			}
			return s
		}),
		"object name": text("the name of an object in the cluster", func(v decode.Value, s string) any {
			if !IsObjectName(s) {
				v.Fault(fault.BadName, fmt.Sprintf("%q is not the name of an object in a cluster", s),
					"write lower-case letters, digits, - and .")
				return nil
			}
			return s
		}),
		"resource": text("the name of a resource, as `nvidia.com/gpu`", func(v decode.Value, s string) any {
			if !isQualified(s) || !strings.Contains(s, "/") {
				v.Fault(fault.BadResource, fmt.Sprintf("%q is not the name of a resource", s), "write it as nvidia.com/gpu or amd.com/gpu")
				return nil
			}
			return s
		}),
		"image": text("the name of an image with its tag or digest", image),
		"tar": text("the name of a `.tar` archive", func(v decode.Value, s string) any {
			if !strings.HasSuffix(s, ".tar") || s == ".tar" || strings.ContainsAny(s, "\n\r") {
				v.Fault(fault.NotTar, fmt.Sprintf("%q is not the name of a .tar archive", s), "pack the code with tar cf code.tar")
				return nil
			}
			return s
		}),
	}
}

func checkName(v decode.Value, s, code string, good bool) any {
	if !good {
		v.Fault(code, nameProblem(s), "begin and end with a letter or digit; between them also - _ and .")
		return nil
	}
	return s
}

func nameProblem(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > longest:
		return fmt.Sprintf("has %d characters, %d at most are taken", len(s), longest)
	}
	text := fmt.Sprintf("%q has a character where it may not", s)
	for i, r := range s {
		inside := i > 0 && i < len(s)-1
		if r == '/' { // some names may have one, after a domain
			continue
		}
		if r >= utf8.RuneSelf || !isAlnum(s[i]) && (!inside || !strings.ContainsRune("-_.", r)) {
			return fmt.Sprintf("%s: %q", text, string(r))
		}
	}
	return text
}

func image(v decode.Value, s string) any {
	if s == "" {
		v.Fault(fault.BadImage, "is empty", `name the image, as "docker.io/library/python:3.12"`)
		return nil
	}
	rest, digest, hasDigest := strings.Cut(s, "@")
	tag, hasTag := "", false
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		rest, tag, hasTag = rest[:i], rest[i+1:], true
	}
	switch {
	case strings.ContainsFunc(s, unicode.IsSpace):
		v.Fault(fault.BadImage, fmt.Sprintf("%q has a blank", s), "write name:tag, without blanks")
	case hasDigest && !isImageDigest(digest):
		v.Fault(fault.BadImage, fmt.Sprintf("%q is not a digest", digest), "write name@sha256:…")
	case hasTag && !isTag(tag):
		v.Fault(fault.BadImage, fmt.Sprintf("%q is not a tag", tag), "write name:tag")
	case !isRepository(rest):
		remedy := "write host/name:tag"
		if strings.ToLower(rest) != rest {
			remedy = "an image's name is lower case"
		}
		v.Fault(fault.BadImage, fmt.Sprintf("%q is not the name of an image", rest), remedy)
	default:
		return s
	}
	return nil
}
