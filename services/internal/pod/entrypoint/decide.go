//go:build linux

package entrypoint

import (
	"cmp"
	"strings"
	"syscall"
)

// forwardedSignal is how a signal is handed on.
type forwardedSignal struct {
	signal syscall.Signal
	group  bool // to the whole process group, not the command alone
	kill   bool // and survivors are killed after the grace
}

// forward decides how a signal is handed on. A signal that ends the command goes to its
// group, as from a terminal; a signal with a meaning for the command alone does not,
// because it would end children that do not handle it.
func forward(sig syscall.Signal) forwardedSignal {
	switch sig { //nolint:exhaustive // all others are handed on to the command
	case syscall.SIGTERM, syscall.SIGINT:
		return forwardedSignal{signal: sig, group: true, kill: true}
	case syscall.SIGHUP, syscall.SIGQUIT:
		return forwardedSignal{signal: sig, group: true}
	default:
		return forwardedSignal{signal: sig}
	}
}

// defaultPath is where programs lie where the environment does not say.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// searchPath returns where programs are looked for: where path says, then in dir, so
// that a user's own come first.
func searchPath(path, dir string) string { return cmp.Or(path, defaultPath) + ":" + dir }

// maxInterpreter is how much of a script the kernel looks at for its interpreter.
const maxInterpreter = 256

// interpreter returns the program that a script's first line names, with its argument
// if it has one, as the kernel reads them; nothing where it names none.
func interpreter(head string) []string {
	line, _, _ := strings.Cut(head, "\n")
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	if arg = strings.TrimSpace(arg); arg != "" {
		return []string{name, arg}
	}
	if name == "" {
		return nil
	}
	return []string{name}
}

// expandAll replaces $(NAME) in words by the value of the variable, and $$(NAME) by $(NAME). A variable that does not exist stays as it is.
func expandAll(words []string, lookup func(string) (string, bool)) []string {
	var all []string
	for _, word := range words {
		all = append(all, expand(word, lookup))
	}
	return all
}

func expand(word string, lookup func(string) (string, bool)) string {
	var text strings.Builder
	for {
		before, after, found := strings.Cut(word, "$(")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		name, rest, closed := strings.Cut(after, ")")
		value, known := lookup(name)
		switch {
		case strings.HasSuffix(before, "$"): // which is there already
			text.WriteString("(")
			word = after
		case closed && known:
			text.WriteString(value)
			word = rest
		default:
			text.WriteString("$(")
			word = after
		}
	}
}
