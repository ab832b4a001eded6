package follow

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads lines of any length, and returns the beginning of long ones.
type lines struct{ from *bufio.Reader }

func newLines(r io.Reader) *lines { return &lines{bufio.NewReaderSize(r, 16<<10)} }

// next returns the beginning of the next line, its whole length, and whether it has no line feed, which only the last line may lack. Its
// error is io.EOF after the last line.
func (l *lines) next(limit int) (text []byte, length int, open bool, err error) {
	for {
		piece, err := l.from.ReadSlice('\n')
		whole := bytes.TrimSuffix(piece, []byte("\n"))
		length += len(whole)
		text = append(text, whole[:min(len(whole), limit-len(text))]...)
		switch {
		case err == nil:
			return text, length, false, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0:
			return text, length, true, nil
		default:
			return nil, 0, false, err
		}
	}
}
