package termination

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// notStarted names the program that an mpirun could not start, and the host, if the mpirun of Open MPI (4, 5), MPICH or Intel MPI names
// them in its last lines; else it is empty.
func notStarted(message string) string {
	var program, host, why string
	for _, says := range []string{
		`(?s)was unable to find the specified executable(?P<why>) file.*\n\s*Node: +(?P<host>\S+)\s+Executable: +(?P<program>[^\n]+)`,
		`(?s)was unable to launch the specified(?P<why>) application as it could not access\s+or execute an executable:\s+Executable: +(?P<program>[^\n]+)\s+Node: +(?P<host>\S+)`,
		`\[proxy:[0-9:]+@(?P<host>[^\]\s]+)\] .*execvp error on file (?P<program>.+) \((?P<why>[^()]+)\)`,
	} {
		r := regexp.MustCompile(says)
		if m := r.FindStringSubmatch(message); m != nil {
			program, host, why = strings.TrimSpace(m[r.SubexpIndex("program")]), m[r.SubexpIndex("host")], m[r.SubexpIndex("why")]
		}
	}
	if program == "" || strings.HasPrefix(path.Base(program), "hydra_") { // mpirun's own
		return ""
	}
	return fmt.Sprintf("%q on %s: %s", program, host, cmp.Or(strings.ToLower(why), "mpirun did not find it, or may not execute it"))
}

// FirstRank returns which process of an MPI run failed first, and its host, as far as the mpirun of Open MPI (4, 5), MPICH or Intel MPI
// names them in its last lines.
func FirstRank(message string) string {
	var rank, host string
	for _, says := range []string{
		`(?:mpirun|prterun|mpiexec) noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited`,
		`(?:mpirun|prterun|mpiexec) has exited due to process rank (?P<rank>\d+) with PID \d+ on\s+node (?P<host>\S+) exiting`,
		`MPI_ABORT was invoked on rank (?P<rank>\d+) `,
		`application called MPI_Abort\(.*\) - process (?P<rank>\d+)`,
		`Process name: \[.*,(?P<rank>\d+)\]`,
	} {
		r := regexp.MustCompile(says)
		m := r.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		if i := r.SubexpIndex("rank"); i > 0 {
			rank = cmp.Or(rank, "rank "+m[i])
		}
		if i := r.SubexpIndex("host"); i > 0 {
			host = cmp.Or(host, " on "+m[i])
		}
	}
	if rank+host == "" {
		return readHydra(message).first()
	}
	return cmp.Or(rank, "a process") + host + " failed first"
}

// hydraEnd is the end of the processes of an MPI run, as Hydra describes it, the mpiexec of MPICH and Intel MPI. Once a process has ended
// badly, Hydra kills all others with SIGKILL and describes their ends, too. So SIGKILL alone does not show which process ended first.
type hydraEnd struct {
	signal  int    // signal that ended a process, SIGKILL if no other one did; zero if none did
	process string // process that ended first; empty if that is unknown
}

// first returns which process ended first, for people; empty if nothing is known of it.
func (e hydraEnd) first() string {
	switch {
	case e.process != "":
		return e.process + " failed first"
	case e.signal == int(syscall.SIGKILL):
		return "one rank was killed, or ended without MPI_Finalize, and mpiexec killed the others"
	}
	return ""
}

// hydraFrame begins each of Hydra's descriptions.
const hydraFrame = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"

// readHydra reads the descriptions of Hydra in the last lines of an mpiexec. The end is empty if there are none.
func readHydra(message string) hydraEnd {
	const kill = int(syscall.SIGKILL)
	var end hydraEnd
	// MPICH counts a signal as an exit code, and names the signal in a line of its own, whichever process it describes.
	var named int
	if m := regexp.MustCompile(`(?m)^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (\d+)\)\s*$`).FindStringSubmatch(message); m != nil {
		named, _ = strconv.Atoi(m[1]) // only digits
	}
	frame := regexp.MustCompile(hydraFrame +
		`\n=\s+(?:RANK (\d+) )?PID \d+ RUNNING AT (\S+)\n=\s+(EXIT CODE|EXIT STATUS|KILLED BY SIGNAL): (\d+)`)
	for _, m := range frame.FindAllStringSubmatch(message, -1) {
		number, _ := strconv.Atoi(m[4]) // only digits
		signal := number
		if m[3] != "KILLED BY SIGNAL" && number != named && number != kill {
			signal = 0
		}
		if signal == kill {
			end.signal = cmp.Or(end.signal, kill)
			continue
		}
		process := "a process"
		if m[1] != "" {
			process = "rank " + m[1]
		}
		return hydraEnd{signal, process + " on " + m[2]}
	}
	if named != 0 {
		end.signal = named
	}
	return end
}

// hydraSignal returns the signal that ended a process of an MPI run, if Hydra names one. After MPI_Abort it is only that of Hydra itself.
func hydraSignal(message string) int {
	n := readHydra(message).signal
	if n > maxSignal || strings.Contains(message, "application called MPI_Abort(") {
		return 0
	}
	return n
}

// beforeHydra returns the lines that a program printed before Hydra described the ends of its processes; none if only a part of a
// description is left before the others.
func beforeHydra(message string) string {
	before, _, found := strings.Cut(message, hydraFrame)
	if found && strings.Contains(before, "=   KILLED BY SIGNAL: ") {
		return ""
	}
	return before
}
