package folder

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// lineFormat is how samples are written as lines.
type lineFormat struct{ csv bool }

func formatOf(path string) lineFormat { return lineFormat{csv: filepath.Ext(path) == "."+CSV} }

// head writes the beginning of a file.
func (f lineFormat) head(to *bytes.Buffer) {
	if f.csv {
		to.WriteString(strings.Join(columns(), ",") + "\n")
	}
}

// put writes a row as one line. Without wide it leaves out columnDirection of CSV.
func (f lineFormat) put(to *bytes.Buffer, r row, wide bool) error {
	if !f.csv {
		return json.NewEncoder(to).Encode(r)
	}
	labels := ""
	if len(r.Labels) > 0 {
		text, err := json.Marshal(r.Labels)
		if err != nil {
			return err
		}
		labels = string(text)
	}
	w := csv.NewWriter(to)
	if err := w.Write(record(r, labels, wide)); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// read returns which sample a line is, false for the line of names.
func (f lineFormat) read(line []byte) (v event.Sample, ok bool, err error) {
	if !f.csv {
		var r row
		err := json.Unmarshal(line, &r)
		return event.Sample{Seq: r.Seq, Sub: r.Sub, Name: r.Metric}, err == nil, err
	}
	fields, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil || len(fields) < 4 {
		return v, false, fmt.Errorf("it is no line of samples: %w", errors.Join(err, csv.ErrFieldCount))
	}
	if fields[0] == columns()[0] {
		return v, false, nil
	}
	seq, err := strconv.ParseInt(fields[0], 10, 64)
	sub, err2 := strconv.Atoi(fields[1])
	return event.Sample{Seq: seq, Sub: sub, Name: fields[3]}, true, errors.Join(err, err2)
}

// block is how many bytes at the end of a file are read: more than the samples of one position in a source take.
const block = 4 << 20

// readTail returns the tail of a file of a size.
func readTail(f io.ReaderAt, size int64, format lineFormat) (tail, error) {
	from := max(0, size-block)
	text := make([]byte, size-from)
	if _, err := f.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
		return tail{}, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	t := tail{size: from + int64(whole)}
	text = text[:whole]
	var err error
	if t.noDirection, err = format.lacksDirection(f, t.size); err != nil {
		return tail{}, err
	}
	if from > 0 { // the first line of text is not whole
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if len(line) == 0 {
			continue
		}
		v, ok, err := format.read(line)
		if err != nil {
			return tail{}, fmt.Errorf("somebody else has written to it: %w", err)
		}
		if !ok || t.hasSamples && (v.Seq != t.seq || v.Sub != t.sub) {
			break
		}
		t.add(&v)
	}
	return t, nil
}

// lacksDirection reports whether the first line of a file of CSV lacks columnDirection.
func (f lineFormat) lacksDirection(file io.ReaderAt, size int64) (bool, error) {
	if !f.csv || size == 0 {
		return false, nil
	}
	head := make([]byte, 1<<10) // more than the names take
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	names, _, _ := strings.Cut(string(head[:n]), "\n")
	return !strings.HasSuffix(names, ","+columnDirection), nil
}

// rows is how many are written to a Parquet file at once.
const rows = 1000

// toParquet makes a Parquet file of one of JSON lines, whole or not at all.
func toParquet(lines, path string) (err error) {
	in, err := os.Open(lines) //nolint:gosec // we wrote it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.CreateTemp(filepath.Dir(path), ".parquet-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	w := parquet.NewGenericWriter[row](out, parquet.Compression(&zstd.Codec{}))
	if err := errors.Join(copyRows(bufio.NewReader(in), w), w.Close(), out.Chmod(0o640), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// copyRows writes every line that from has as a row.
func copyRows(from io.Reader, to *parquet.GenericWriter[row]) error {
	d, some := json.NewDecoder(from), make([]row, 0, rows)
	for {
		var r row
		err := d.Decode(&r)
		if err == nil {
			some = append(some, r)
		}
		if end := errors.Is(err, io.EOF); end || len(some) == rows {
			if _, err := to.Write(some); err != nil || end {
				return err
			}
			some = some[:0]
			continue
		}
		if err != nil {
			return err
		}
	}
}
