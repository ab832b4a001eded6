package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Content types that are spoken.
const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
)

// maxMessages is how many nested messages a request may hold: decoded messages take more memory than their bytes.
const maxMessages = 60_000

var errTooManyMessages = fmt.Errorf("it holds more than %d messages", maxMessages)

// decode decodes a request: an ExportMetricsServiceRequest, which has the fields of MetricsData.
func decode(kind string, body []byte) (*metricsv1.MetricsData, error) {
	data := &metricsv1.MetricsData{}
	if kind == typeJSON {
		if bytes.Count(body, []byte("{")) > maxMessages {
			return nil, errTooManyMessages
		}
		return data, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, data)
	}
	remaining := maxMessages
	if err := count(body, data.ProtoReflect().Descriptor(), &remaining); err != nil {
		return nil, err
	}
	return data, proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, data)
}

// count subtracts the number of messages in b, a message of type d, from remaining.
func count(b []byte, d protoreflect.MessageDescriptor, remaining *int) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		field := d.Fields().ByNumber(number)
		if field != nil && field.Message() != nil && kind == protowire.BytesType {
			if *remaining--; *remaining < 0 {
				return errTooManyMessages
			}
			inner, _ := protowire.ConsumeBytes(b)
			if err := count(inner, field.Message(), remaining); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// Codes of google.rpc.Status.
const (
	codeInvalid     = 3
	codeExhausted   = 8
	codeUnavailable = 14
)

// status returns a google.rpc.Status.
func status(kind string, code int, message string) []byte {
	if kind == typeJSON {
		b, err := json.Marshal(map[string]any{"code": code, "message": message})
		if err != nil {
			return []byte("{}")
		}
		return b
	}
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code)) //nolint:gosec // one of ours
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), message)
}

// partialSuccess returns an ExportMetricsServiceResponse with the number of refused data points and the reason.
func partialSuccess(kind string, refused int64, why string) []byte {
	if kind == typeJSON {
		if refused == 0 {
			return []byte("{}")
		}
		b, err := json.Marshal(map[string]any{"partialSuccess": map[string]string{
			"rejectedDataPoints": strconv.FormatInt(refused, 10),
			"errorMessage":       why,
		}})
		if err != nil {
			return []byte("{}")
		}
		return b
	}
	if refused == 0 {
		return nil
	}
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(refused)) //nolint:gosec // a count
	inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
}

// errTooLarge means that a request is larger than the limit.
var errTooLarge = errors.New("larger than any that is read")
