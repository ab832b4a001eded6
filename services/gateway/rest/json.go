package rest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Media types.
const (
	typeJSON   = "application/json"
	typeTOML   = "application/toml"
	typeNDJSON = "application/x-ndjson"
	typeBytes  = "application/octet-stream"
)

// marshaler writes JSON in the canonical form of protobuf, and streams as one object
// per line.
type marshaler struct{ runtime.JSONPb }

// StreamContentType implements runtime.StreamContentType.
func (*marshaler) StreamContentType(any) string { return typeNDJSON }

// NewDecoder implements runtime.Marshaler. Its errors do not mention protobuf, since
// clients send JSON.
func (m *marshaler) NewDecoder(r io.Reader) runtime.Decoder { //nolint:ireturn // as the interface has it
	decoder := m.JSONPb.NewDecoder(r)
	return runtime.DecoderFunc(func(v any) error {
		err := decoder.Decode(v)
		if err == nil || errors.Is(err, io.EOF) { // io.EOF: the body is empty
			return err
		}
		text, isProto := strings.CutPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
		if !isProto {
			return err
		}
		return errors.New("body: " + text)
	})
}

// Delimiter implements runtime.Delimited.
func (*marshaler) Delimiter() []byte { return []byte("\n") }

// tomlMarshaler reads a body that is only a descriptor as a request with that
// descriptor. It writes responses as marshaler does.
type tomlMarshaler struct{ marshaler }

// NewDecoder implements runtime.Marshaler.
func (*tomlMarshaler) NewDecoder(r io.Reader) runtime.Decoder { //nolint:ireturn // as the interface has it
	return runtime.DecoderFunc(func(v any) error {
		m, ok := v.(proto.Message)
		if !ok {
			return fmt.Errorf("%T cannot be read as TOML", v)
		}
		field := m.ProtoReflect().Descriptor().Fields().ByName("descriptor_toml")
		if field == nil {
			return fmt.Errorf("this call takes no descriptor: send %s", typeJSON)
		}
		text, err := io.ReadAll(r)
		if err == nil {
			m.ProtoReflect().Set(field, protoreflect.ValueOfBytes(text))
		}
		return err
	})
}

// strictQuery parses the parameters of a URL. It refuses unknown parameters, since a
// misspelt filter must not match everything. Enum values are given by name. The errors
// are plain text; the caller adds the status code.
type strictQuery struct{ runtime.DefaultQueryParser }

// Parse implements runtime.QueryParameterParser.
func (q *strictQuery) Parse(m proto.Message, values url.Values, filter *utilities.DoubleArray) error {
	fields := m.ProtoReflect().Descriptor()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		field := fieldOf(fields, key)
		if field == nil {
			return fmt.Errorf("parameter %.100q does not exist: use %s", key, alternatives(parameters(fields)))
		}
		if err := checkEnum(field, key, values[key]); err != nil {
			return err
		}
	}
	err := q.DefaultQueryParser.Parse(m, values, filter)
	if err == nil {
		return nil
	}
	for key, value := range values {
		var number *strconv.NumError
		if err := q.DefaultQueryParser.Parse(m.ProtoReflect().New().Interface(), url.Values{key: value}, filter); errors.As(err, &number) {
			return fmt.Errorf("parameter %s: %.100q is not a value of its type", key, number.Num)
		} else if err != nil {
			return fmt.Errorf("parameter %s: %w", key, err)
		}
	}
	return err
}

// checkEnum refuses values that are not names of an enum's values. Numbers are refused,
// too.
func checkEnum(field protoreflect.FieldDescriptor, key string, values []string) error {
	if field.Enum() == nil {
		return nil
	}
	for _, value := range values {
		if field.Enum().Values().ByName(protoreflect.Name(value)) != nil {
			continue
		}
		var names []string
		for i := range field.Enum().Values().Len() {
			names = append(names, string(field.Enum().Values().Get(i).Name()))
		}
		return fmt.Errorf("parameter %s: %.100q is not one of its values: use %s", key, value, alternatives(names))
	}
	return nil
}

// alternatives joins words as "a, b or c".
func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// fieldOf returns the field that a key names, or nil.
func fieldOf(m protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor { //nolint:ireturn // as protobuf has it
	first, rest, deeper := strings.Cut(key, ".")
	name, _, indexed := strings.Cut(first, "[")
	if indexed { // a key of a map may contain dots
		deeper = false
	}
	f := m.Fields().ByName(protoreflect.Name(name))
	if f == nil {
		f = m.Fields().ByJSONName(name)
	}
	switch {
	case f == nil:
		return nil
	case deeper && (f.Message() == nil || f.IsMap() || f.IsList()):
		return nil
	case deeper:
		return fieldOf(f.Message(), rest)
	case f.IsMap() != indexed:
		return nil
	}
	return f
}

func parameters(m protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range m.Fields().Len() {
		names = append(names, m.Fields().Get(i).JSONName())
	}
	slices.Sort(names)
	return names
}
