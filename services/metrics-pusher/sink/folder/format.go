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
		var r struct {
			Seq    int64  `json:"seq"`
			Sub    int    `json:"sub"`
			Metric string `json:"metric"`
		}
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

// readTail returns the tail of a file of a size.
func readTail(f io.ReaderAt, size int64, format lineFormat) (t tail, err error) {
	if t.size, err = format.readAll(f, size, t.add); err != nil {
		return tail{}, err
	}
	t.noDirection, err = format.lacksDirection(f, t.size)
	return t, err
}

// has reports whether a file has a sample, or will have it with the lines that are to follow its tail.
func (t *tail) has(f io.ReaderAt, v *event.Sample, format lineFormat) (bool, error) {
	if t.isNew(v) {
		return false, nil
	}
	if t.samples == nil {
		all := make(map[identity]bool)
		if _, err := format.readAll(f, t.size, func(v *event.Sample) { all[identityOf(v)] = true }); err != nil {
			return false, err
		}
		t.samples = all
	}
	return t.samples[identityOf(v)], nil
}

// readAll calls each with every sample of the whole lines of a file of a size, and returns how many bytes these lines have.
func (f lineFormat) readAll(file io.ReaderAt, size int64, each func(*event.Sample)) (whole int64, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 256<<10)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		v, ok, err := f.read(line)
		if err != nil {
			return 0, fmt.Errorf("the line at byte %d was not written by this platform (move the file away): %w", whole, err)
		}
		if ok {
			each(&v)
		}
		whole += int64(len(line))
	}
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
