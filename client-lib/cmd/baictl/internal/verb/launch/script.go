package launch

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// scriptHelp is the help of --script.
const scriptHelp = `With --script code is sent along: what is in the folder DIR, a file, or an
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

// requireScript refuses a descriptor that needs code if none is sent along, before
// anything is sent. Files that cannot be read are left to the platform.
func (w *submitFlags) requireScript(s *session.Session, doc input.Document, set []*baiv1.Override) error {
	d := doc.Check(set, false).Descriptor
	if w.script != "" || d == nil || d.ML == nil || d.ML.Script == nil {
		return nil
	}
	return s.FailWithFaults([]*baiv1.Fault{{
		File: doc.Name, Path: "ml.script", Code: codeScript,
		Message: fmt.Sprintf("the descriptor wants code to be sent along (%s)", d.ML.Script.Archive),
		Remedy:  "say where it is: --script DIR",
	}})
}

// uploadScript sends the code of --script, once, and returns its digest; empty for none.
func (w *submitFlags) uploadScript(ctx context.Context, s *session.Session, c *bai.Client) (string, error) {
	if w.script == "" || w.scriptDigest != "" {
		return w.scriptDigest, nil
	}
	a, err := session.Pack(w.script)
	if err != nil {
		return "", err
	}
	defer func() { _ = a.Close() }() // it was only read
	if n := len(a.Guarded); n > 0 {
		s.Screen.Note("baictl: " + skippedNote(a.Guarded[:min(n, maxGuarded)], n))
	}
	s.Screen.Live(fmt.Sprintf("sending the code, %s", printer.Bytes(a.Size)))
	_, err = c.Send(ctx, bai.Code{SHA256: a.SHA256, Size: a.Size, Content: a})
	s.Screen.Live("")
	if err != nil {
		return "", s.FailIfInvalid(err)
	}
	w.scriptDigest = a.SHA256
	return w.scriptDigest, nil
}

// maxGuarded is how many files that are left out are named.
const maxGuarded = 10

// skippedNote counts n skipped files and folders, and names some of them.
func skippedNote(some []string, n int) string {
	names := make([]string, len(some))
	for i, name := range some {
		names[i] = printer.Name(name)
	}
	text := "not sent, because it may hold secrets: " + strings.Join(names, ", ")
	if more := n - len(some); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " (to send one: the line !NAME in .baiignore)"
}
