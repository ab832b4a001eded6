// Package objects delivers the rows of each run as one object of a bucket, or one file of a folder.
//
// An object is written whole or not at all, under a name that follows from the run: a second delivery finds the first.
package objects

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

// The values of a format.
const (
	CSV   = "csv"
	JSONL = "jsonl"
)

// Uploader stores objects.
type Uploader interface {
	// PutOnce stores the bytes that fill writes under a name, all or none. It stores nothing if the name has an object.
	PutOnce(ctx context.Context, name string, fill func(w io.Writer) error) error
}

// Writer is a destination: an object for each run.
type Writer struct {
	to     Uploader
	format string
}

// New returns the destination that writes objects of a format.
func New(to Uploader, format string) *Writer { return &Writer{to: to, format: format} }

// Deliver implements deliver.Destination.
func (d *Writer) Deliver(ctx context.Context, rows deliver.Delivery) error {
	var ofRows error
	err := d.to.PutOnce(ctx, rows.Run+"."+d.format, func(w io.Writer) error {
		buffered := bufio.NewWriter(w)
		write := writeCSV
		if d.format == JSONL {
			write = writeJSONL
		}
		if ofRows = write(buffered, rows); ofRows != nil {
			return ofRows
		}
		return buffered.Flush()
	})
	switch {
	case ofRows != nil:
		return ofRows
	case err != nil:
		return readable(err)
	}
	return nil
}

func writeCSV(w io.Writer, rows deliver.Delivery) error {
	out := csv.NewWriter(w)
	fields := make([]string, len(rows.Columns))
	for i, c := range rows.Columns {
		fields[i] = c.Name
	}
	if err := writeRecord(out, w, fields); err != nil {
		return readable(err)
	}
	for row, err := range rows.Rows {
		if err != nil {
			return err
		}
		for i, v := range row {
			fields[i] = field(v)
		}
		if err := writeRecord(out, w, fields); err != nil {
			return readable(err)
		}
	}
	out.Flush()
	return readable(out.Error())
}

// writeRecord writes a line of CSV. One empty field is written in quotes, since readers skip blank lines. Lines of out end up in w.
func writeRecord(out *csv.Writer, w io.Writer, fields []string) error {
	if len(fields) != 1 || fields[0] != "" {
		return out.Write(fields)
	}
	if out.Flush(); out.Error() != nil {
		return out.Error()
	}
	_, err := io.WriteString(w, `""`+"\n")
	return err
}

// field is a value in a file of CSV: no value is an empty field.
func field(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	}
	return ""
}

func writeJSONL(w io.Writer, rows deliver.Delivery) error {
	out := json.NewEncoder(w)
	for row, err := range rows.Rows {
		if err != nil {
			return err
		}
		object := make(map[string]any, len(row))
		for i, v := range row {
			object[rows.Columns[i].Name] = v
		}
		if err := out.Encode(object); err != nil {
			return readable(err)
		}
	}
	return nil
}
