// Package printer formats answers of the platform for people and programs: words, tables,
// JSON and YAML.
package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// JSON is a message of the API on one line.
//
// Fields have their names in lowerCamelCase and the order of the API. Enums are their
// words in lower case ("running"), integers are numbers, times RFC 3339 in UTC; NaN and
// infinities are the strings of protobuf's JSON. Numbers and booleans are always present;
// other empty fields are left out.
func JSON(m proto.Message) json.RawMessage {
	var b bytes.Buffer
	writeMessage(&b, m.ProtoReflect())
	return b.Bytes()
}

// Indent is JSON on many lines, with a line feed at the end.
func Indent(text json.RawMessage) (string, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return "", fmt.Errorf("indent JSON: %w", err)
	}
	return b.String() + "\n", nil
}

// YAML is JSON as YAML, in the same order.
func YAML(text json.RawMessage) (string, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(escapeUnprintable(text), &node); err != nil {
		return "", fmt.Errorf("make YAML of JSON: %w", err)
	}
	plain(&node)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return "", fmt.Errorf("make YAML: %w", err)
	}
	return b.String(), nil
}

// escapeUnprintable escapes the characters of JSON strings that may stand in JSON but not
// in YAML: DEL, the C1 controls, U+FEFF, U+FFFE and U+FFFF.
func escapeUnprintable(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r >= 0x7f && r <= 0x9f, r == 0xfeff, r == 0xfffe, r == 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// plain removes the style of JSON from a tree. Strings remain strings.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}

func writeMessage(b *bytes.Buffer, m protoreflect.Message) {
	if t, ok := m.Interface().(*timestamppb.Timestamp); ok {
		writeText(b, t.AsTime().UTC().Format(time.RFC3339Nano))
		return
	}
	b.WriteByte('{')
	first := b.Len()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); isShown(m, f) {
			writeName(b, first, f.JSONName())
			writeField(b, f, m.Get(f))
		}
	}
	b.WriteByte('}')
}

// isShown says whether a field is shown: set, or a plain number or boolean.
func isShown(m protoreflect.Message, f protoreflect.FieldDescriptor) bool {
	if m.Has(f) {
		return true
	}
	if f.HasPresence() || f.IsList() || f.IsMap() {
		return false
	}
	return f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind && f.Kind() != protoreflect.EnumKind
}

func writeName(b *bytes.Buffer, first int, name string) {
	if b.Len() > first {
		b.WriteByte(',')
	}
	writeText(b, name)
	b.WriteByte(':')
}

func writeField(b *bytes.Buffer, f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.IsList():
		b.WriteByte('[')
		for i := range v.List().Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, f, v.List().Get(i))
		}
		b.WriteByte(']')
	case f.IsMap():
		writeMap(b, f.MapValue(), v.Map())
	default:
		writeValue(b, f, v)
	}
}

func writeMap(b *bytes.Buffer, f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []protoreflect.MapKey
	for k := range m.Range {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	b.WriteByte('{')
	first := b.Len()
	for _, k := range keys {
		writeName(b, first, k.String())
		writeValue(b, f, m.Get(k))
	}
	b.WriteByte('}')
}

func writeValue(b *bytes.Buffer, f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch x := v.Interface().(type) {
	case protoreflect.Message:
		writeMessage(b, x)
	case protoreflect.EnumNumber:
		writeText(b, word(f.Enum(), x))
	case float64:
		writeFloat(b, x)
	case string:
		writeText(b, x)
	case []byte:
		writeText(b, string(x))
	default:
		b.WriteString(v.String())
	}
}

func writeFloat(b *bytes.Buffer, x float64) {
	switch {
	case math.IsNaN(x):
		writeText(b, "NaN")
	case math.IsInf(x, 1):
		writeText(b, "Infinity")
	case math.IsInf(x, -1):
		writeText(b, "-Infinity")
	default:
		b.WriteString(Exact(x))
	}
}

func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a string has no errors
	b.Truncate(b.Len() - 1) // the line feed
}

// word is an enum's value without the prefix that all its values share, in lower
// case: PHASE_RUNNING is "running".
func word(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	v := e.Values().ByNumber(n)
	if v == nil {
		return strconv.Itoa(int(n))
	}
	prefix := strings.TrimSuffix(string(e.Values().Get(0).Name()), "UNSPECIFIED")
	if v.FullName() == "bai.v1.GRADE_FINE" {
		return "ok" // as everybody else says
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
}
