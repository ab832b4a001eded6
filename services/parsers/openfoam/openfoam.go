// Package openfoam reads the log of a solver of OpenFOAM, with the output of time that the solver was run under.
package openfoam

import (
	"bytes"
	"io"

	"github.com/benchmark-ai/bai/services/parsers/internal/mpirun"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "openfoam"

const labelField = "field" // the field that is solved for, as Ux or p

// Kind returns the parser of solvers of OpenFOAM: those of openfoam.com (checked with 1912; Time.C, SolverPerformance.C, error.C) and of
// openfoam.org print the same lines. The log may have those of blockMesh, decomposePar and others in it; the last solver that has ended
// counts. Lines may begin with the number of a process by mpirun ("[1,0]<stdout>:").
//
// Where time (with -p, -v or of a shell) was run around the solver, its wall clock time is the headline, as time printed it. Without time,
// those of the solver's last step are: its clock counts whole seconds, and its execution time is the CPU time of one process.
//
// A run is complete if the solver printed End. A fatal error of OpenFOAM, an abort of mpirun and the words of GNU time about a command that
// failed are Failed.
func Kind() report.Kind {
	return report.Kind{Name: name, Tool: "OpenFOAM", Metrics: definitions(), Looks: looks, Parse: parse}
}

func definitions() []report.Definition {
	of := []string{labelField}
	return []report.Definition{
		{Name: "wall_clock_time", Unit: report.Seconds, Direction: report.Lower, Headline: true, Meaning: "of the command, by time"},
		{Name: "user_time", Unit: report.Seconds, Direction: report.Lower, Meaning: "CPU time of the command in user mode, by time"},
		{Name: "system_time", Unit: report.Seconds, Direction: report.Lower, Meaning: "CPU time of the command in the kernel, by time"},
		{
			Name: "execution_time", Unit: report.Seconds, Direction: report.Lower, Headline: true,
			Meaning: "CPU time of the first process at the last step",
		},
		{
			Name: "clock_time", Unit: report.Seconds, Direction: report.Lower, Headline: true,
			Meaning: "time from the start to the last step, whole seconds",
		},
		{Name: "steps", Unit: report.Count, Meaning: "steps of time, or iterations of a steady solver, that have ended"},
		{
			Name: "initial_residual", Unit: report.Count, Direction: report.Lower, Labels: of,
			Meaning: "before the last solution for a field",
		},
		{Name: "final_residual", Unit: report.Count, Direction: report.Lower, Labels: of, Meaning: "after the last solution for a field"},
		{Name: "solver_iterations", Unit: report.Count, Labels: of, Meaning: "of the linear solver for a field, in the whole run"},
	}
}

func looks(head []byte) bool {
	var tags mpirun.Tags
	build, exec := false, false
	for line := range bytes.Lines(head) {
		line = tags.Remove(line)
		build = build || bytes.HasPrefix(line, []byte("Build  : "))
		exec = exec || bytes.HasPrefix(line, []byte("Exec   : "))
		if build && exec || bytes.HasPrefix(line, []byte("ExecutionTime = ")) && bytes.Contains(line, []byte("  ClockTime = ")) {
			return true
		}
	}
	return false
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	p := parser{}
	if err := report.Lines(r, p.line); err != nil {
		return report.Report{}, err
	}
	return p.report(), nil
}

// parser reads the runs of programs of OpenFOAM one after the other. A solver is one that prints its execution time.
type parser struct {
	now     invocation
	solver  *invocation // the last run of a solver
	whole   *invocation // the last one that is complete
	version string      // in the banner of the next run
	tags    mpirun.Tags
}

// next begins a run.
func (p *parser) next() {
	p.keep()
	p.now = invocation{version: p.version}
	p.version = ""
}

// keep keeps the run read if it was that of a solver.
func (p *parser) keep() {
	if !p.now.solver() {
		return
	}
	done := p.now
	p.solver = &done
	if done.missing() == "" && done.failed() == "" {
		p.whole = &done
	}
}

func (p *parser) line(line []byte) {
	line = p.tags.Remove(line)
	p.now.time.See(line)
	if len(line) == 0 || p.now.says(line) {
		return
	}
	switch line[0] {
	case 'B':
		p.build(line)
	case 'E':
		p.now.clock(line)
	case '|':
		p.banner(line)
	default:
		p.now.step(line)
	}
}

// banner reads the version, as in "|  \\    /   O peration     | Version:  10".
func (p *parser) banner(line []byte) {
	if _, text, ok := bytes.Cut(line, []byte("| Version: ")); ok {
		p.version = report.Clip(string(bytes.Trim(text, " |")))
	}
}

// build reads the first line of a run, as "Build  : _f3950763fe-20191219 OPENFOAM=1912" or "Build  : 10-c4cf895ad8fa".
func (p *parser) build(line []byte) {
	text, ok := bytes.CutPrefix(line, []byte("Build  : "))
	if !ok {
		return
	}
	p.next()
	if p.now.version != "" {
		return
	}
	if _, api, ok := bytes.Cut(text, []byte("OPENFOAM=")); ok {
		text = api
	}
	text, _, _ = bytes.Cut(text, []byte(" "))
	p.now.version = report.Clip(string(text))
}

// report returns what the last run of a solver says.
func (p *parser) report() report.Report {
	p.keep()
	if p.solver == nil {
		return p.unsolved()
	}
	failure := p.now.failed()
	if failure == "" {
		failure = p.solver.failed()
	}
	if failure != "" {
		return report.Failure(name, p.solver.version, p.solver.metrics(), failure)
	}
	shown, missing := p.solver, p.solver.missing()
	if missing != "" && p.whole != nil {
		shown, missing = p.whole, missing+"; the values are those of the run before"
	}
	return report.Of(name, shown.version, shown.metrics(), missing)
}

// unsolved returns the report of a text without a step that has ended.
func (p *parser) unsolved() report.Report {
	metrics, failure := p.now.metrics(), p.now.failed()
	switch {
	case failure != "":
		return report.Failure(name, p.now.version, metrics, failure)
	case len(metrics) == 0 && p.now.version == "":
		return report.Of(name, "", nil, "")
	}
	return report.Of(name, p.now.version, metrics, "no solver has ended a step: no line ExecutionTime")
}
