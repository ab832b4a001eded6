package collect

import "bytes"

// lineJoiner puts lines together from the pieces in which they were written. It
// keeps no more of a line than a limit.
type lineJoiner struct {
	limit  int
	text   []byte // the beginning of the line that is under way
	length int64  // of that line so far; 0 where none is under way
	from   int64  // where the piece lies in which it begins
	last   int64  // when its last piece was written
}

// line is a line as it was written, or the beginning of one that is longer than
// the limit.
type line struct {
	text   []byte // valid until the next piece
	length int64
	seq    int64
	from   int64 // where the piece lies in which it begins
}

// add takes the next piece, whose data begin at offset at, and hands over each
// line that ends in it. A line that does not is met again by whoever reads from
// offset from, or from where it begins where from is negative.
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

// append adds data to the line that is under way.
func (j *lineJoiner) append(data []byte, from int64) {
	if j.length == 0 {
		j.from = from
	}
	j.length += int64(len(data))
	j.text = append(j.text, data[:min(len(data), j.limit-len(j.text))]...)
}

// clear forgets the line that is under way, not its bytes.
func (j *lineJoiner) clear() { j.text, j.length = j.text[:0], 0 }

// resumeOffset reports where to read from to meet the line that is under way again, at
// most offset.
func (j *lineJoiner) resumeOffset(offset int64) int64 {
	if j.length > 0 {
		return min(j.from, offset)
	}
	return offset
}
