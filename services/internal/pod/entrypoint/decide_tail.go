package entrypoint

import (
	"bytes"
	"strings"
)

// maxTail is how many bytes of last words are left.
const maxTail = 2048

// tail is the end of a command's output on its two streams. An unfinished line of one
// stream is ended where the other continues: else the two would become one line.
type tail struct {
	text  []byte
	isErr bool // whose end it is
}

// add adds the output of a stream.
func (t *tail) add(isErr bool, data []byte) {
	if len(data) == 0 {
		return
	}
	if n := len(t.text); isErr != t.isErr && n > 0 && t.text[n-1] != '\n' {
		t.text = append(t.text, '\n')
	}
	t.isErr = isErr
	if len(data) > maxTail {
		data = data[len(data)-maxTail:]
	}
	t.text = append(t.text, data...)
	if n := len(t.text); n > 2*maxTail {
		t.text = append(t.text[:0], t.text[n-maxTail:]...)
	}
}

// lastLines returns the end as text, from the beginning of a line on where that is among
// it.
func (t *tail) lastLines() string {
	text := t.text
	if len(text) > maxTail {
		text = text[len(text)-maxTail:]
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok && len(bytes.TrimSpace(rest)) > 0 {
			text = rest
		}
	}
	return strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "\uFFFD")
}
