package collect

import "bytes"

// lineJoiner joins pieces of output into lines. It stores at most limit bytes of a line.
type lineJoiner struct {
	limit  int
	text   []byte // the beginning of the open line
	length int64  // length of the open line so far; 0 if no line is open
	from   int64  // offset of the piece in which the open line begins
	last   int64  // when its last piece was written
}

// line is a line as it was written, or the beginning of a line that is longer than the limit.
type line struct {
	text   []byte // valid until the next piece
	length int64
	seq    int64
	from   int64 // offset of the piece in which it begins
}

// add takes the next piece, whose data begin at offset at, and calls hand for each line that ends in it. A line that does not end stays
// open: a reader meets it again by reading from offset from, or from the beginning of the line if from is negative.
func (j *lineJoiner) add(data []byte, at, from int64, hand func(line) error) error {
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			if from < 0 {
				from = at
			}
			j.append(data, from)
			return nil
		}
		l := line{text: data[:i], length: int64(i), seq: at + int64(i) + 1, from: from}
		if j.length > 0 {
			j.append(data[:i], from)
			l.text, l.length, l.from = j.text, j.length, j.from
			j.clear()
		}
		if err := hand(l); err != nil {
			return err
		}
		data, at = data[i+1:], at+int64(i)+1
	}
	return nil
}

// append adds data to the open line.
func (j *lineJoiner) append(data []byte, from int64) {
	if j.length == 0 {
		j.from = from
	}
	j.length += int64(len(data))
	j.text = append(j.text, data[:min(len(data), j.limit-len(j.text))]...)
}

// clear drops the open line and keeps its memory.
func (j *lineJoiner) clear() { j.text, j.length = j.text[:0], 0 }

// resumeOffset returns the offset to read from to meet the open line again, at most offset.
func (j *lineJoiner) resumeOffset(offset int64) int64 {
	if j.length > 0 {
		return min(j.from, offset)
	}
	return offset
}
