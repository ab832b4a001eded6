package rest

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// marshaler writes JSON in the canonical form of protobuf, and streams of it as
// one object a line.
type marshaler struct{ runtime.JSONPb }

// StreamContentType implements runtime.StreamContentType.
func (*marshaler) StreamContentType(any) string { return typeNDJSON }

// Delimiter implements runtime.Delimited.
func (*marshaler) Delimiter() []byte { return []byte("\n") }

// tomlMarshaler reads a descriptor alone as a request that has nothing else, and
// answers as marshaler does.
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
			return fmt.Errorf("no descriptor is wanted here: send %s", typeJSON)
		}
		text, err := io.ReadAll(r)
		if err == nil {
			m.ProtoReflect().Set(field, protoreflect.ValueOfBytes(text))
		}
		return err
	})
}

// strictQuery reads the parameters of a URL, and refuses those that the request
// does not have: a misspelt filter must not find everything.
type strictQuery struct{ runtime.DefaultQueryParser }

// Parse implements runtime.QueryParameterParser.
func (q *strictQuery) Parse(m proto.Message, values url.Values, filter *utilities.DoubleArray) error {
	for key := range values {
		if !has(m.ProtoReflect().Descriptor(), key) {
			return status.Errorf(codes.InvalidArgument, "there is no parameter %.100q: there are %s", key, strings.Join(parameters(m.ProtoReflect().Descriptor()), ", "))
		}
	}
	return q.DefaultQueryParser.Parse(m, values, filter)
}

// has reports whether a message has the field that a key names.
func has(m protoreflect.MessageDescriptor, key string) bool {
	first, rest, deeper := strings.Cut(key, ".")
	name, _, indexed := strings.Cut(first, "[")
	if indexed { // a map's key may have points
		deeper = false
	}
	f := m.Fields().ByName(protoreflect.Name(name))
	if f == nil {
		f = m.Fields().ByJSONName(name)
	}
	switch {
	case f == nil:
		return false
	case deeper:
		return f.Message() != nil && !f.IsMap() && !f.IsList() && has(f.Message(), rest)
	}
	return f.IsMap() == indexed
}

func parameters(m protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range m.Fields().Len() {
		names = append(names, m.Fields().Get(i).JSONName())
	}
	slices.Sort(names)
	return names
}
