// Package mpirun knows what launchers of MPI print around the output of a program.
package mpirun

import (
	"bytes"
	"slices"
)

// Tags removes the number of the process that mpirun --tag-output puts before each line: `[1,0]<stdout>:` by Open MPI 4, and
// `[1,0]<stdout>: ` by Open MPI 5, which may have the name of the job, the host and the PID in it, too.
type Tags struct {
	bare bool // a line began right behind its tag: no blank there belongs to one
}

// Remove returns a line of the text without its tag. Blanks at the beginning of the line itself stay.
func (t *Tags) Remove(line []byte) []byte {
	if len(line) == 0 || line[0] != '[' {
		return line
	}
	const begin, length = "]<std", len("]<stdout>:")
	i := bytes.Index(line, []byte(begin))
	if i < 0 || len(line) < i+length {
		return line
	}
	if end := string(line[i+len(begin) : i+length]); end != "out>:" && end != "err>:" {
		return line
	}
	line = line[i+length:]
	t.bare = t.bare || len(line) > 0 && line[0] > ' '
	if t.bare {
		return line
	}
	return bytes.TrimPrefix(line, []byte(" "))
}

// beginnings are how a line begins that tells of a program that could not be started, or has been ended: by Open MPI, MPICH, Intel MPI
// and Slurm.
//
//nolint:gochecknoglobals // a constant
var beginnings = []string{
	"mpirun was unable to", "mpirun noticed that", "mpirun detected that", "prterun noticed that", "prterun detected that",
	"There are not enough slots available", "ORTE was unable to", "ORTE has lost communication", "PRTE has lost communication",
	"MPI_ABORT was invoked", "MPI_INIT has failed", "Primary job  terminated normally, but", "srun: error: ",
	"slurmstepd: error: ", "Abort(",
	"ssh: connect to host ", "ssh: Could not resolve hostname ", "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
}

// phrases are in such lines behind the name of a host, in brackets.
//
//nolint:gochecknoglobals // a constant
var phrases = []string{"MPI_ERRORS_ARE_FATAL", "MPI_ABORT was invoked", "HYDU_create_process"}

// Errors keeps what a launcher said last about a program that could not be started, or was ended.
type Errors struct {
	last string
	more int  // how many lines may still belong to it
	rule bool // the line before is a rule, which Open MPI prints around what it says
}

// maxMore is how many lines of Open MPI are kept after the one that tells of an error.
const maxMore = 4

// See reads a line. It reports whether the line belongs to an error.
func (e *Errors) See(line []byte) bool {
	rule, before := bytes.HasPrefix(line, []byte("-----")), e.rule
	e.rule = rule
	switch {
	case isError(line):
		e.last, e.more = string(line), 0
		if before {
			e.more = maxMore
		}
		return true
	case rule:
		e.more = 0
	case e.more > 0:
		e.more--
		e.last += " " + string(line)
		return true
	}
	return false
}

// Say keeps what a program itself says about why it did not begin.
func (e *Errors) Say(line []byte) { e.last, e.more = string(line), 0 }

// Last returns the last error, or the empty string.
func (e *Errors) Last() string { return e.last }

func isError(line []byte) bool {
	if len(line) == 0 {
		return false
	}
	for _, b := range beginnings {
		if line[0] == b[0] && len(line) >= len(b) && string(line[:len(b)]) == b {
			return true
		}
	}
	if line[0] == '[' {
		return slices.ContainsFunc(phrases, func(p string) bool { return bytes.Contains(line, []byte(p)) })
	}
	return bytes.HasSuffix(line, []byte("not found")) && bytes.Contains(line, []byte("mpirun: "))
}
