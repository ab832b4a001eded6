package pod

import "fmt"

// Floors are amounts of free bytes on the disk of a data folder, one for each kind of
// writer, in the order in which they stop. Output that is shipped stays on the disk,
// and output that is only recorded goes with its pod: shipping stops first, so that
// the end of the run that fills the disk frees room for others. The platform's own
// writes, which are commands, statuses and ends, never stop.
type Floors struct {
	Output    int64 // below it no output of benchmarks is shipped to the broker
	Recording int64 // below it no output is recorded in a pod's volume
	Results   int64 // below it lines and samples go no further from the broker to the store
	Runs      int64 // below it, without the reserve, no new runs are accepted
	Reserve   int64 // of a file that only holds its room, and is removed where others fill the disk
}

// maxReserve is the reserve on a disk that is large enough for it.
const maxReserve = 32 << 20

// FloorsOf returns the floors of a disk of so many bytes.
func FloorsOf(total int64) Floors {
	r := min(maxReserve, total/8)
	return Floors{Output: 2 * r, Recording: RecordingFloor(2 * r), Results: r / 4 * 5, Runs: r / 2, Reserve: r}
}

// RecordingFloor returns the floor of recording beside that of output.
func RecordingFloor(output int64) int64 { return output / 4 * 3 }

// Disk is the state of a disk.
type Disk struct {
	Free, Total int64 // bytes, without those reserved for the administrator
	ReserveHeld bool  // the reserve's file exists: its room is not counted as free
}

// usable returns the bytes that are free for others than the platform itself.
func (d Disk) usable() int64 {
	if d.ReserveHeld {
		return d.Free
	}
	return d.Free - FloorsOf(d.Total).Reserve
}

// AcceptsRuns reports whether there is room for new runs.
func (d Disk) AcceptsRuns() bool { return d.usable() >= FloorsOf(d.Total).Runs }

// AcceptsResults reports whether there is room for results in the store.
func (d Disk) AcceptsResults() bool { return d.Free >= FloorsOf(d.Total).Results }

// AcceptsOutput reports whether there is room for benchmarks' output beyond what is recorded.
func (d Disk) AcceptsOutput() bool { return d.Free >= FloorsOf(d.Total).Output }

// NeedsReserve reports whether the reserve is needed now, given the free bytes before.
// While other processes are still filling the disk, they would take the reserve too.
func (d Disk) NeedsReserve(before int64) bool {
	return d.ReserveHeld && d.Free < FloorsOf(d.Total).Runs/2 && d.Free >= before
}

// CanReserve reports whether the reserve can be taken, so that there is still room for
// benchmarks' output beside it.
func (d Disk) CanReserve() bool {
	f := FloorsOf(d.Total)
	return !d.ReserveHeld && d.Free-f.Reserve >= f.Output
}

// RefusalMessage says why no run is accepted now into the platform whose data folder is dir.
func (d Disk) RefusalMessage(dir string) string {
	return fmt.Sprintf("the platform's disk is full: %s has %s free, and a new run needs %s: free some space there, then try again",
		dir, FormatSize(max(d.usable(), 0)), FormatSize(FloorsOf(d.Total).Runs))
}

// ProblemMessage says that benchmarks' output waits for the disk of the folder dir; empty
// where it does not.
func (d Disk) ProblemMessage(dir string) string {
	if d.AcceptsOutput() {
		return ""
	}
	text := fmt.Sprintf("the platform's disk is full: %s has %s free, and the output of benchmarks needs %s", dir, FormatSize(d.Free),
		FormatSize(FloorsOf(d.Total).Output))
	if !d.AcceptsRuns() {
		text += "; new runs are refused"
	}
	return text + ": free some space there"
}

// WaitingMessage says of one benchmark that its output waits, where so many bytes are free
// and so many are needed.
func WaitingMessage(free, floor int64) string {
	return fmt.Sprintf("the platform's disk is full (%s free, %s needed): the output of the benchmark waits for room", FormatSize(free),
		FormatSize(floor))
}

// ResumedMessage says that a benchmark's output waits no longer.
func ResumedMessage(free int64) string {
	return fmt.Sprintf("the platform's disk has room again (%s free): the output of the benchmark goes on", FormatSize(free))
}

// FormatSize says a number of bytes as a person would.
func FormatSize(n int64) string {
	size, unit := float64(n), "B"
	for _, next := range [...]string{"KiB", "MiB", "GiB", "TiB"} {
		if size < 1000 {
			break
		}
		size, unit = size/1024, next
	}
	if unit == "B" || size >= 10 {
		return fmt.Sprintf("%.0f %s", size, unit)
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}
