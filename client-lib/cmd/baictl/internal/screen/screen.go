// Package screen writes lines for people: on a terminal above one live status line,
// elsewhere plainly.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
)

const eraseLine = "\r\x1b[K"

// A Style of text on a terminal.
type Style string

// The styles.
const (
	Plain  Style = ""
	Good   Style = "32" // green
	Bad    Style = "31" // red
	Muted  Style = "33" // yellow
	Active Style = "36" // cyan
)

// A Screen is where a command writes. It may be used from any goroutine.
type Screen struct {
	out    io.Writer
	notes  io.Writer
	fd     int  // of out, where it is a terminal
	tty    bool // out is a terminal
	smart  bool // that understands more than letters
	colour bool

	mu   sync.Mutex
	live string // text of the live line; empty for none
	page int    // lines of the page that is shown
}

// New makes a screen of out, where results and the live line go, and notes,
// where the rest goes. NO_COLOR and TERM are heeded.
func New(out, notes io.Writer, getenv func(string) string) *Screen {
	s := &Screen{out: out, notes: notes}
	if f, ok := file(out); ok && term.IsTerminal(int(f.Fd())) {
		s.fd, s.tty = int(f.Fd()), true
		s.smart = getenv("TERM") != "dumb" && getenv("TERM") != ""
		s.colour = s.smart && getenv("NO_COLOR") == ""
	}
	return s
}

func file(w io.Writer) (*os.File, bool) {
	if u, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = u.Unwrap()
	}
	f, ok := w.(*os.File)
	return f, ok
}

// IsLive says whether there can be a live line.
func (s *Screen) IsLive() bool { return s.smart }

// IsTerminal says whether people look at it.
func (s *Screen) IsTerminal() bool { return s.tty }

// Width is the terminal's width in cells, now; 0 where there is none.
func (s *Screen) Width() int {
	if !s.tty {
		return 0
	}
	width, _, err := term.GetSize(s.fd)
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// Paint is text in a style, where there are colours.
func (s *Screen) Paint(style Style, text string) string {
	if !s.colour || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Line writes a line that lasts, above the live line.
func (s *Screen) Line(text string) { s.writeLine(s.out, text) }

// Fold is text as the screen shows it: on a terminal it is broken between words, with the
// lines after the first indented; elsewhere it is one line, for tools.
func (s *Screen) Fold(text string) string {
	if !s.tty {
		return text
	}
	const indent = "  "
	lines := printer.Wrap(text, s.Width()-len(indent))
	return strings.Join(lines, "\n"+indent)
}

// Note writes a line that lasts to where notes go.
func (s *Screen) Note(text string) { s.writeLine(s.notes, text) }

func (s *Screen) writeLine(w io.Writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live
	s.draw("")
	s.page = 0                   // the page remains on the screen
	_, _ = fmt.Fprintln(w, text) // a writer that fails remembers it
	s.draw(live)
}

// Live replaces the live line; it is cut to the terminal's width. An empty text
// takes it away.
func (s *Screen) Live(text string) {
	if !s.smart {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw(text)
}

// Page shows lines in place of those of the last page, cut to the height of the terminal.
// Lines written in between remain above.
func (s *Screen) Page(lines []string) {
	if !s.smart {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := s.height() - 1; len(lines) > most {
		lines = lines[:most]
	}
	var b strings.Builder
	if s.page > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.page)
	}
	b.WriteString("\r\x1b[J")
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	s.page = len(lines)
	_, _ = io.WriteString(s.out, b.String()) // a writer that fails remembers it
}

func (s *Screen) height() int {
	_, height, err := term.GetSize(s.fd)
	if err != nil || height <= 1 {
		return 24
	}
	return height
}

func (s *Screen) draw(text string) {
	if text == "" && s.live == "" {
		return
	}
	s.live = text
	text = printer.Cut(strings.TrimSpace(printer.Clean(text)), s.Width()-1)
	_, _ = io.WriteString(s.out, eraseLine+text) // a writer that fails remembers it
}
