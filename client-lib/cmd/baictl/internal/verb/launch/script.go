package launch

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/source"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// sending says in the help of a verb what code is sent along.
const sending = `With --script code is sent along: what is in the folder DIR, a file, or an
archive (tar, tar.gz, tar.bz2, tar.zst, zip). The benchmark finds it, unpacked,
in the folder that BAI_SCRIPTS_PATH names: "$(BAI_SCRIPTS_PATH)/run.sh" as
benchmark_code runs a file of it. A descriptor with ml.script needs it, any
other may have it. Code that the platform has is not sent again. .git is left
out, and what the lines of .baiignore in DIR say (*.pyc, out/, /data); a link
that leads out of DIR is refused. Files that may hold secrets (.env, *.pem,
id_rsa, .aws/, .kube/ and the like) are left out and named; the line !NAME in
.baiignore has one sent.`

// codeScript is the code of the fault of a descriptor that wants code.
const codeScript = "BAI9010"

// lacking refuses a descriptor that wants code where none is sent along, before
// anything is sent. What cannot be read is left to the platform.
func (w *wish) lacking(s *session.Session, doc source.Document, set []*baiv1.Override) error {
	d := doc.Check(set, false).Descriptor
	if w.script != "" || d == nil || d.ML == nil || d.ML.Script == nil {
		return nil
	}
	return s.Refuse([]*baiv1.Fault{{
		File: doc.Name, Path: "ml.script", Code: codeScript, Message: fmt.Sprintf("the descriptor wants code to be sent along (%s)", d.ML.Script.Archive),
		Remedy: "say where it is: --script DIR",
	}})
}

// code sends what --script names, once, and returns its digest; empty for none.
func (w *wish) code(ctx context.Context, s *session.Session, c *bai.Client) (string, error) {
	if w.script == "" || w.sent != "" {
		return w.sent, nil
	}
	a, err := session.Pack(w.script)
	if err != nil {
		return "", err
	}
	defer func() { _ = a.Close() }() // it was only read
	if n := len(a.Guarded); n > 0 {
		s.Screen.Note("baictl: " + guarded(a.Guarded[:min(n, maxGuarded)], n))
	}
	s.Screen.Live(fmt.Sprintf("sending the code, %s", show.Bytes(a.Size)))
	_, err = c.Send(ctx, bai.Code{SHA256: a.SHA256, Size: a.Size, Content: a})
	s.Screen.Live("")
	if err != nil {
		return "", s.Refused(err)
	}
	w.sent = a.SHA256
	return w.sent, nil
}

// maxGuarded is how many files that are left out are named.
const maxGuarded = 10

// guarded says what of n files and folders is left out, of which some are named.
func guarded(some []string, n int) string {
	names := make([]string, len(some))
	for i, name := range some {
		names[i] = show.Name(name)
	}
	text := "not sent, because it may hold secrets: " + strings.Join(names, ", ")
	if more := n - len(some); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " (to send one: the line !NAME in .baiignore)"
}
