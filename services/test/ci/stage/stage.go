// Package stage runs the stages of a check, in parallel lanes, and reports their results.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/test/ci/gotest"
)

// Stage is one step of a check.
type Stage struct {
	Name string
	Lane string // stages of one lane run one after the other, in the order given
	// After names stages, listed earlier, that must have passed before. A stage whose
	// condition has become impossible is not run.
	After []string
	// Behind names stages that must have ended before, whatever became of them: those
	// with which it would compete for the machine.
	Behind []string
	Budget time.Duration // how long it should take; one that takes longer is marked, and does not fail for that
	Setup  bool          // it prepares other stages, and tests nothing
	Always bool          // it cleans up: it runs when all others have ended, with any result, also after the check was stopped
	Run    func(ctx context.Context) Result
}

// Result is the result of a stage.
type Result struct {
	Tests gotest.Report
	Err   error         // why the stage failed where no test says so
	CPU   time.Duration // that its commands took of processors, with the processes that they waited for
}

// failed reports whether the stage is to be mended.
func (r Result) failed() bool { return r.Err != nil || r.Tests.Failed > 0 || len(r.Tests.Failures) > 0 }

// State is how a stage stands.
type State string

// States.
const (
	Passed State = "passed"
	Failed State = "FAILED"
	NotRun State = "not run"
)

// Outcome is the end of a stage.
type Outcome struct {
	Stage  Stage
	State  State
	Began  time.Duration // after the beginning of the first stage
	Took   time.Duration
	Result Result
}

// Run runs the stages and returns their outcomes in the order given. It prints a
// line to out when a stage begins and when it ends.
func Run(ctx context.Context, stages []Stage, out io.Writer) []Outcome {
	r := &runner{
		began: time.Now(), out: out, outcomes: make([]Outcome, len(stages)),
		ended: map[string]chan struct{}{}, states: map[string]State{},
	}
	lanes, last := map[string][]int{}, []int(nil)
	for i, s := range stages {
		r.ended[s.Name] = make(chan struct{})
		if s.Always {
			last = append(last, i)
		} else {
			lanes[s.Lane] = append(lanes[s.Lane], i)
		}
	}
	var all sync.WaitGroup
	for _, lane := range lanes {
		all.Go(func() {
			for _, i := range lane {
				r.outcomes[i] = r.run(ctx, stages[i])
			}
		})
	}
	all.Wait()
	for _, i := range last {
		r.outcomes[i] = r.run(ctx, stages[i])
	}
	return r.outcomes
}

type runner struct {
	began    time.Time
	outcomes []Outcome

	mu     sync.Mutex
	out    io.Writer
	states map[string]State
	ended  map[string]chan struct{} // closed when a stage has its state
}

// run runs one stage once those before it have ended.
func (r *runner) run(ctx context.Context, s Stage) Outcome {
	for _, name := range slices.Concat(s.After, s.Behind) {
		if ended := r.ended[name]; ended != nil {
			<-ended
		}
	}
	o := Outcome{Stage: s, Began: time.Since(r.began)}
	if err := r.blocked(ctx, s); err != nil {
		o.State, o.Result.Err = NotRun, err
	} else {
		r.print("%s  %-22s begins\n", clock(o.Began), s.Name)
		began := time.Now()
		if s.Always {
			ctx = context.WithoutCancel(ctx)
		}
		o.Result = s.Run(ctx)
		o.Took, o.State = time.Since(began), Passed
		if o.Result.failed() {
			o.State = Failed
		}
	}
	r.print("%s  %s\n", clock(time.Since(r.began)), o.Line())
	r.mu.Lock()
	r.states[s.Name] = o.State
	r.mu.Unlock()
	close(r.ended[s.Name])
	return o
}

// blocked says why a stage cannot run.
func (r *runner) blocked(ctx context.Context, s Stage) error {
	if s.Always {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("the check was told to stop before")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range s.After {
		if r.states[name] != Passed {
			return fmt.Errorf("it needs the stage %q, which did not pass", name)
		}
	}
	return nil
}

func (r *runner) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}
