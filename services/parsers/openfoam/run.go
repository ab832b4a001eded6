package openfoam

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/gnutime"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const maxFields = 100 // of a run that are reported

// invocation is what one program has printed, and time after it.
type invocation struct {
	version  string
	steps    int
	stepping bool   // a step was begun
	last     string // the last line ExecutionTime, without this word
	fields   []*field
	ended    bool // End was printed
	fatal    string
	message  bool   // the message of a fatal error comes next
	aborted  string // what mpirun says
	time     gnutime.Scanner
}

// field is what is solved for.
type field struct {
	name       string
	iterations int
	last       []byte // the last line about it
}

func (r *invocation) solver() bool { return r.last != "" }

// clock reads "ExecutionTime = 0.02 s  ClockTime = 0 s" at the end of a step, and End at that of the run.
func (r *invocation) clock(line []byte) {
	if string(line) == "End" {
		r.ended = true
		return
	}
	text, ok := bytes.CutPrefix(line, []byte("ExecutionTime = "))
	if !ok {
		return
	}
	if r.last != string(text) {
		r.last = string(text)
	}
	if r.stepping {
		r.steps++
	}
	r.stepping = false
}

// step reads a line of a step.
func (r *invocation) step(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("Time = ")):
		r.stepping = true
	case !r.solve(line):
		r.trouble(line)
	}
}

// solve reads a line as "DICPCG:  Solving for p, Initial residual = 0.5, Final residual = 1e-07, No Iterations 28". Those of vectors that
// are solved for as a whole have three values each, and are left out.
func (r *invocation) solve(line []byte) bool {
	_, rest, ok := bytes.Cut(line, []byte(":  Solving for "))
	if !ok {
		return false
	}
	of, rest, _ := bytes.Cut(rest, []byte(","))
	_, count, _ := bytes.Cut(rest, []byte(", No Iterations "))
	iterations, err := strconv.Atoi(string(count))
	if err != nil || iterations < 0 || iterations > 1e9 {
		return true
	}
	if f := r.field(of); f != nil {
		f.iterations += iterations
		f.last = append(f.last[:0], rest...)
	}
	return true
}

// field returns what is known of a field. It is nil if the name is none, or if there are too many.
func (r *invocation) field(name []byte) *field {
	at := slices.IndexFunc(r.fields, func(f *field) bool { return f.name == string(name) })
	switch {
	case at >= 0:
		return r.fields[at]
	case len(r.fields) == maxFields || len(name) == 0 || report.Clip(string(name)) != string(name):
		return nil
	}
	r.fields = append(r.fields, &field{name: string(name)})
	return r.fields[len(r.fields)-1]
}

// says reads the message of a fatal error. It is the first line behind that of the error that has words.
func (r *invocation) says(line []byte) bool {
	if !r.message {
		return false
	}
	if text := unranked(line); len(text) > 0 {
		r.fatal, r.message = r.fatal+": "+report.Clip(string(text)), false
	}
	return true
}

// trouble reads the lines that tell of a failure. Lines of single processes begin with their number, as "[1] ".
func (r *invocation) trouble(line []byte) {
	switch line[0] {
	case '-', '[':
		r.error(line)
	case '#':
		r.signal(line)
	default:
		r.abort(line, aborts(line))
	}
}

// error reads a line as "[1] --> FOAM FATAL IO ERROR: ", "[1] #1  Foam::sigFpe::sigHandler(int) at ??:?", or one of the MPI library.
func (r *invocation) error(line []byte) {
	if text := unranked(line); len(text) > 0 && text[0] == '#' {
		r.signal(text)
		return
	}
	if _, text, ok := bytes.Cut(line, []byte("--> FOAM FATAL ")); ok && r.fatal == "" {
		word, _, _ := bytes.Cut(text, []byte(":"))
		r.fatal, r.message = "FOAM FATAL "+report.Clip(string(word)), true
		return
	}
	if _, text, ok := bytes.Cut(line, []byte(" *** ")); ok {
		r.abort(text, bytes.HasPrefix(text, []byte("An error occurred in MPI_")) ||
			bytes.HasPrefix(text, []byte("Process received signal")))
	}
}

// abort notes the first line about processes that failed.
func (r *invocation) abort(line []byte, aborts bool) {
	if aborts && r.aborted == "" {
		r.aborted = report.Clip(string(line))
	}
}

// unranked returns a line without the number of a process.
func unranked(line []byte) []byte {
	if line[0] == '[' {
		if i := bytes.IndexByte(line, ']'); i > 0 && i < 10 {
			line = line[i+1:]
		}
	}
	return bytes.TrimSpace(line)
}

// signal reads a line of the stack that OpenFOAM prints for a signal, as "#1  Foam::sigFpe::sigHandler(int) at ??:?".
func (r *invocation) signal(line []byte) {
	for _, s := range [...]struct{ class, says string }{
		{" Foam::sigFpe::", "Foam::sigFpe: floating point exception"},
		{" Foam::sigSegv::", "Foam::sigSegv: segmentation violation"},
		{" Foam::sigInt::", "Foam::sigInt: interrupted"},
		{" Foam::sigQuit::", "Foam::sigQuit: quit"},
	} {
		if r.fatal == "" && bytes.Contains(line, []byte(s.class)) {
			r.fatal = s.says
		}
	}
}

// aborts reports whether a line is one that mpirun (of Open MPI, PRRTE or MPICH) or srun prints of processes that failed.
func aborts(line []byte) bool {
	begins := func(word string) bool { return bytes.HasPrefix(line, []byte(word)) }
	contains := func(word string) bool { return bytes.Contains(line, []byte(word)) }
	switch line[0] {
	case 'M', 'P', 'T', 'O', 'A':
		return slices.ContainsFunc([]string{
			"MPI_ABORT was invoked", "Primary job  terminated normally, but", "There are not enough slots available", "ORTE was unable",
			"ORTE has lost communication", "PRTE has lost communication", "An ORTE daemon has unexpectedly failed",
			"All nodes which are allocated for this job are already filled",
		}, begins)
	case 'm', 'p', 'o':
		return slices.ContainsFunc([]string{"mpirun ", "mpiexec ", "prterun ", "orterun "}, begins) && slices.ContainsFunc([]string{
			" noticed that ", " has exited due to ", " detected that ", " was unable to ", " could not find ",
		}, contains)
	case 's':
		return begins("srun: error: ")
	case '=':
		return contains("BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES")
	}
	return false
}

// failed says how the run failed, or nothing. OpenFOAM says most, and time least.
func (r *invocation) failed() string {
	for _, failure := range []string{r.fatal, r.aborted, r.time.Result().Failure} {
		if failure != "" {
			return failure
		}
	}
	return ""
}

// missing says what the output of a run lacks.
func (r *invocation) missing() string {
	_, _, ok := r.clocks()
	switch {
	case !r.ended:
		return "the solver did not print End"
	case !ok:
		return "cannot read ExecutionTime = " + report.Clip(r.last)
	}
	return r.time.Result().Missing
}

// clocks returns the times of the last step.
func (r *invocation) clocks() (execution, clock float64, ok bool) {
	first, second, ok := strings.Cut(r.last, "  ClockTime = ")
	if !ok {
		return 0, 0, false
	}
	execution, one := seconds(first)
	clock, two := seconds(second)
	return execution, clock, one && two
}

// seconds reads a time as "62.25 s" or, with the switch printExecutionFormat, "01:02.25", "01:00:02" and "2-01:00:02".
func seconds(text string) (float64, bool) {
	if value, ok := strings.CutSuffix(text, " s"); ok {
		v, ok := report.Number(value)
		return v, ok && v >= 0
	}
	days, clock, ok := strings.Cut(text, "-")
	if !ok {
		days, clock = "0", text
	}
	sum, ok := report.Number(days)
	parts := strings.Split(clock, ":")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	sum *= 24 * 3600
	unit := 1.0
	for _, part := range slices.Backward(parts) {
		v, ok := report.Number(part)
		if !ok || v < 0 || v >= 60 {
			return 0, false
		}
		sum += v * unit
		unit *= 60
	}
	return sum, sum >= 0 && sum < 1e15
}

// metrics returns the metrics of a run.
func (r *invocation) metrics() []report.Metric {
	var metrics []report.Metric
	add := func(name, unit string, direction report.Direction, value float64, headline bool) {
		metrics = append(metrics, report.Metric{Name: name, Value: value, Unit: unit, Direction: direction, Headline: headline})
	}
	timed := false
	if r.solver() {
		for _, m := range r.time.Result().Metrics {
			if m.Name == "wall_clock_time" || m.Name == "user_time" || m.Name == "system_time" {
				metrics = append(metrics, m)
				timed = timed || m.Headline
			}
		}
	}
	if execution, clock, ok := r.clocks(); ok {
		add("execution_time", report.Seconds, report.Lower, execution, !timed)
		add("clock_time", report.Seconds, report.Lower, clock, !timed)
	}
	if r.steps > 0 {
		add("steps", report.Count, "", float64(r.steps), false)
	}
	for _, f := range r.fields {
		metrics = append(metrics, f.metrics()...)
	}
	return metrics
}

// metrics returns the metrics of a field: residuals of its last solution, and all iterations.
func (f *field) metrics() (metrics []report.Metric) {
	add := func(name string, direction report.Direction, value float64) {
		labels := map[string]string{labelField: f.name}
		metrics = append(metrics, report.Metric{Name: name, Value: value, Unit: report.Count, Direction: direction, Labels: labels})
	}
	for _, name := range [...]string{"initial", "final"} {
		_, text, _ := strings.Cut(strings.ToLower(string(f.last)), name+" residual = ")
		text, _, _ = strings.Cut(text, ",")
		if v, ok := report.Number(text); ok {
			add(name+"_residual", report.Lower, v)
		}
	}
	add("solver_iterations", "", float64(f.iterations))
	return metrics
}
