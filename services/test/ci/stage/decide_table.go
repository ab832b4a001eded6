package stage

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// Line is the outcome on one line.
func (o Outcome) Line() string {
	line := fmt.Sprintf("%-22s %s", o.Stage.Name, o.State)
	if o.State == NotRun {
		return line + ": " + o.Result.Err.Error()
	}
	line += " after " + seconds(o.Took)
	if n := o.Result.Tests.Passed + o.Result.Tests.Failed; n > 0 {
		line += fmt.Sprintf(", %d tests", n)
	}
	if n := o.Result.Tests.Failed; n > 0 {
		line += fmt.Sprintf(", %d failed", n)
	}
	return line
}

// Report is the end of a check as people read it: a table of the stages, each
// failure with its reason, and the sums. Logs is the folder of the whole logs.
func Report(outcomes []Outcome, total time.Duration, logs string) string {
	var b strings.Builder
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STAGE\tSTATE\tTIME\tCPU\tBUDGET\tTESTS\tFAILED\tSKIPPED")
	passed, failed, skipped, cpu := 0, 0, 0, time.Duration(0)
	for _, o := range outcomes {
		t := o.Result.Tests
		passed, failed, skipped, cpu = passed+t.Passed, failed+t.Failed, skipped+t.Skipped, cpu+o.Result.CPU
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Stage.Name, o.State, formatDuration(o), formatCPU(o.Result.CPU), budget(o),
			count(t.Passed+t.Failed), count(t.Failed), count(t.Skipped))
	}
	fmt.Fprintf(table, "all\t%s\t%s\t%s\t\t%s\t%s\t%s\n", state(outcomes), seconds(total), formatCPU(cpu), count(passed+failed),
		count(failed), count(skipped))
	_ = table.Flush() // into memory
	for _, o := range outcomes {
		b.WriteString(failures(o))
	}
	if bad := stages(outcomes); bad > 0 {
		fmt.Fprintf(&b, "\n%d of %d stages did not pass; the whole logs are in %s\n", bad, len(outcomes), logs)
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped\n", passed, max(failed, stages(outcomes)), skipped)
	return b.String()
}

// Ok reports whether every stage passed.
func Ok(outcomes []Outcome) bool { return stages(outcomes) == 0 }

// stages counts those that did not pass.
func stages(outcomes []Outcome) (n int) {
	for _, o := range outcomes {
		if o.State != Passed {
			n++
		}
	}
	return n
}

func state(outcomes []Outcome) State {
	if Ok(outcomes) {
		return Passed
	}
	return Failed
}

// failures lists the failures of a stage.
func failures(o Outcome) string {
	var b strings.Builder
	for _, f := range o.Result.Tests.Failures {
		name := strings.TrimSpace(strings.TrimPrefix(f.Package, "github.com/benchmark-ai/bai/") + " " + f.Test)
		fmt.Fprintf(&b, "\nFAILED %s (%s)\n", name, o.Stage.Name)
		for _, line := range f.Why {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	if o.State == Failed && o.Result.Err != nil {
		fmt.Fprintf(&b, "\nFAILED %s\n  %s\n", o.Stage.Name, strings.ReplaceAll(strings.TrimSpace(o.Result.Err.Error()), "\n", "\n  "))
	}
	return b.String()
}

func formatDuration(o Outcome) string {
	if o.State == NotRun {
		return "-"
	}
	return seconds(o.Took)
}

func formatCPU(cpu time.Duration) string {
	if cpu == 0 {
		return "-"
	}
	return seconds(cpu)
}

// budget is that of the stage, with a mark where it took longer.
func budget(o Outcome) string {
	if o.Stage.Budget == 0 {
		return "-"
	}
	if o.Took > o.Stage.Budget {
		return seconds(o.Stage.Budget) + " exceeded"
	}
	return seconds(o.Stage.Budget)
}

func count(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

// clock formats a time of the check.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
