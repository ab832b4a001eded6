// Package termination reads how a container ended: the reason, and what its last lines say about it.
package termination

import (
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Exit codes of a shell, which the entrypoint uses, too.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
	maxSignal         = 64
)

// maxLastLine is how many characters of a benchmark's last line are repeated.
const maxLastLine = 500

// Reason returns why a process of the user's ended badly.
func Reason(t *corev1.ContainerStateTerminated, subject, limit string) (event.Reason, string) {
	code := int(t.ExitCode)
	tail, words := "", LastLine(t.Message)
	if words != "" {
		tail = ": " + words
	}
	missing, without := strings.CutPrefix(words, pod.NoResults)
	switch {
	case t.Reason == "OOMKilled":
		return event.OOMKilled, subject + " ran out of memory (OOM)" + limit
	case notStarted(t.Message) != "":
		return event.CommandNotFound, fmt.Sprintf("%s could not start %s (exit code %d)", subject, notStarted(t.Message), code)
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun", code == exitNotFound, code == exitNotExecutable:
		return event.CommandNotFound, fmt.Sprintf("%s's command was not found, or cannot be executed (exit code %d)%s", subject, code, tail)
	case without && code == pod.ExitNoResults:
		return event.NoResults, fmt.Sprintf("%s left no results: %s", subject, missing)
	case hydraSignal(t.Message) != 0:
		n := hydraSignal(t.Message)
		return event.Signaled, fmt.Sprintf("%s was ended by signal %d%s (exit code %d)%s", subject, n, signalName(n), code, tail)
	case code > exitSignal && code <= exitSignal+maxSignal:
		return event.Signaled, fmt.Sprintf("%s was ended by signal %d%s (exit code %d)%s", subject, code-exitSignal,
			signalName(code-exitSignal), code, tail)
	}
	return event.NonZeroExit, fmt.Sprintf("%s ended with exit code %d%s", subject, code, tail)
}

// signalName returns the names of the signals that people meet.
func signalName(n int) string {
	names := map[int]string{
		1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL",
		11: "SEGV", 13: "PIPE", 15: "TERM",
	}
	if name, ok := names[n]; ok {
		return " SIG" + name
	}
	return ""
}

// Describe returns the exit code of a container with its last line.
func Describe(t *corev1.ContainerStateTerminated) string {
	s := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		s += ", " + t.Reason
	}
	if w := LastLine(t.Message); w != "" {
		s = w + " (" + s + ")"
	}
	return s
}

// LastLine returns the last line with words, not a frame of dashes. If mpirun has printed a framed message of its own, it returns the
// program's last line before the frame.
func LastLine(message string) string {
	var w string
	message = beforeHydra(message)
	framed := strings.Contains(message, "mpirun") || strings.Contains(message, "prterun") || strings.Contains(message, "Primary job")
	for line := range strings.Lines(strings.ToValidUTF8(message, "\uFFFD")) {
		line = strings.TrimSpace(line)
		if framed && len(line) >= 40 && strings.Trim(line, "-") == "" {
			if w != "" {
				break
			}
			framed = false // the program has printed no line
		}
		if strings.ContainsFunc(line, isWordRune) {
			w = line
		}
	}
	if r := []rune(w); len(r) > maxLastLine {
		return string(r[:maxLastLine]) + "…"
	}
	return w
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
