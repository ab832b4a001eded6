package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
)

// receiver receives the files of an import, one after another.
type receiver struct {
	stream ImportStream
	files  map[string]File // announced files that have not arrived yet, by name
}

func newReceiver(stream ImportStream, files []File) *receiver {
	r := &receiver{stream: stream, files: make(map[string]File)}
	for _, f := range files {
		r.files[f.Name] = f
	}
	return r
}

// file returns the next file, or io.EOF after the last.
func (r *receiver) file() (*incomingFile, error) {
	p, err := r.stream.Next()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, streamError(err)
	}
	f, ok := r.files[p.File]
	if !ok {
		return nil, fault(p.File, 0, "is not one of the files that were named, or comes twice")
	}
	delete(r.files, p.File)
	return &incomingFile{file: f, stream: r.stream, piece: p, sum: sha256.New()}, nil
}

// documents receives all documents.
func (r *receiver) documents(begin Begin) (map[string][]byte, error) {
	all := make(map[string][]byte)
	for range begin.documents() {
		in, err := r.file()
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		if !isDocument(in.file.Name) {
			return nil, fault(in.file.Name, 0, "comes before all documents have come")
		}
		if all[in.file.Name], err = in.readAll(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unexpectedEOF turns io.EOF into a *StreamError.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return streamError(err)
	}
	return err
}

// incomingFile reads a file of an import. It returns io.EOF only if the file is
// complete and its digest is right.
type incomingFile struct {
	file   File
	stream ImportStream
	piece  Piece
	sum    hash.Hash
	size   int64
}

// Read implements io.Reader.
func (in *incomingFile) Read(b []byte) (int, error) {
	for len(in.piece.Data) == 0 {
		if in.piece.Last {
			return 0, in.verify()
		}
		p, err := in.stream.Next()
		if err != nil {
			return 0, streamError(err)
		}
		if p.File != in.file.Name {
			return 0, fault(in.file.Name, 0, "ends early: %q follows it", p.File)
		}
		in.piece = p
	}
	n := copy(b, in.piece.Data)
	in.piece.Data = in.piece.Data[n:]
	in.size += int64(n)
	if in.size > in.file.Size {
		return 0, fault(in.file.Name, 0, "has more than the %d bytes that it is said to have", in.file.Size)
	}
	in.sum.Write(b[:n])
	return n, nil
}

// verify returns io.EOF if the file has its announced size and digest, and a fault
// otherwise.
func (in *incomingFile) verify() error {
	if in.size != in.file.Size || hex.EncodeToString(in.sum.Sum(nil)) != in.file.SHA256 {
		return fault(in.file.Name, 0, "is not what its digest says: it was changed or cut")
	}
	return io.EOF
}

// readAll returns the whole file.
func (in *incomingFile) readAll() ([]byte, error) {
	var b bytes.Buffer
	_, err := b.ReadFrom(in)
	return b.Bytes(), err
}

// forEachLine calls use with each line of the file, and its number.
func (in *incomingFile) forEachLine(use func(n int, line []byte) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var long []byte // the start of a line that is longer than the reader's buffer
	for n := 1; ; {
		part, err := r.ReadSlice('\n')
		whole := part
		if len(long) > 0 || err != nil {
			long = append(long, part...)
			whole = long
		}
		switch {
		case len(whole) > maxLine:
			return fault(in.file.Name, n, "has more than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(whole) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fault(in.file.Name, n, "the last line does not end")
		case err != nil:
			return err
		}
		if err := use(n, whole[:len(whole)-1]); err != nil {
			return err
		}
		long = long[:0]
		n++
	}
}
