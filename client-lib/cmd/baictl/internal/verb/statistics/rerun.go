package statistics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/comparison"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/repeat"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/price"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge/sequential"
)

const (
	maxLost      = 3 // pairs in a row without values, after which no further one is made
	summaryPause = time.Second
)

// rerunFlags are the flags of compare --rerun.
type rerunFlags struct {
	rerun   bool
	maxRuns int
	maxCost string
}

func (f *rerunFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.BoolVar(&f.rerun, "rerun", false, "repeat a run of each side in pairs until the verdict stands")
	set.IntVar(&f.maxRuns, "max-runs", 20, "with --rerun: submit so many runs at most, 2 to 40")
	set.StringVar(&f.maxCost, "max-cost", "", "with --rerun: submit no run that would cost more in all, such as \"20 USD\"")
}

// check refuses flags that do not fit each other.
func (f *rerunFlags) check(cmd *cobra.Command, output string, files int) error {
	switch {
	case !f.rerun && (cmd.Flags().Changed("max-runs") || cmd.Flags().Changed("max-cost")):
		return session.UsageErrorf(cmd, "--max-runs and --max-cost are limits of --rerun: add it")
	case !f.rerun:
		return nil
	case cmd.Flags().Changed("by"):
		return session.UsageErrorf(cmd, "--rerun repeats runs of two sides, and --by ranks those of one: leave one of the two out")
	case files > 0 || output == benchstatOutput:
		return session.UsageErrorf(cmd, "--rerun repeats runs of the platform: files and -o benchstat have none")
	case f.maxRuns < 2 || f.maxRuns > 2*sequential.MaxPairs:
		return session.UsageErrorf(cmd, "--max-runs %d: want 2 to %d", f.maxRuns, 2*sequential.MaxPairs)
	}
	return nil
}

// budget returns the budget of --max-cost.
func (f *rerunFlags) budget(cmd *cobra.Command, first *baiv1.CompareRunsResponse, fewest int) (comparison.Budget, error) {
	if f.maxCost == "" {
		return comparison.Budget{}, nil
	}
	money, err := price.Parse(f.maxCost)
	if refused, ok := errors.AsType[*price.FaultError](err); ok {
		return comparison.Budget{}, session.UsageErrorf(cmd, "--max-cost: %s (%s)", refused.Message, refused.Remedy)
	}
	var total price.Total
	total.Add(money, time.Hour)
	return comparison.NewBudget(total.Amount(), money.Currency(), first, fewest)
}

// rerunner repeats a run of each side.
type rerunner struct {
	session   *session.Session
	client    *bai.Client
	what      comparison.Rerun
	pairs     *comparison.Pairs
	budget    comparison.Budget
	maxRuns   int
	namespace string

	submitted int
	current   string // ID of the run that is waited for
	last      *baiv1.CompareRunsResponse
	result    *baiv1.CompareRunsResponse
	warned    map[string]bool
}

// repeatRuns compares two sides by repetitions of the newest run of each.
func (f compareFlags) repeatRuns(cmd *cobra.Command, s *session.Session, base, other string) (*baiv1.CompareRunsResponse, error) {
	asked := f
	if f.maxCost != "" && len(f.metrics) > 0 {
		asked.metrics = append([]string{comparison.CostMetric}, f.metrics...)
	}
	first, err := asked.compare(cmd, s, base, other, false)
	if err != nil {
		return nil, err
	}
	r, err := f.rerunner(cmd, s, first)
	if mismatch, ok := errors.AsType[*comparison.MismatchError](err); ok {
		err = session.UsageErrorf(cmd, "%s", mismatch.Message)
	}
	if err != nil {
		return nil, err
	}
	ctx, release := s.Env.Interrupts(cmd.Context(), exitcode.ErrDetached)
	defer release()
	why, err := r.run(ctx)
	s.Screen.Live("")
	if ctx.Err() != nil {
		return nil, &exitcode.DetachedError{ID: r.current, Cause: context.Cause(ctx), Resume: f.command(base, other)}
	}
	if err != nil {
		return nil, err
	}
	return r.response(why), nil
}

// rerunner returns what repeats the newest run of each side of a comparison.
func (f compareFlags) rerunner(cmd *cobra.Command, s *session.Session, first *baiv1.CompareRunsResponse) (*rerunner, error) {
	series, err := comparison.ToJudge(first, f.metrics)
	if err != nil {
		return nil, err
	}
	r := &rerunner{session: s, maxRuns: f.maxRuns, warned: map[string]bool{}}
	if r.pairs, err = comparison.NewPairs(series, float64(f.minChange), f.maxRuns); err != nil {
		return nil, err
	}
	if r.budget, err = f.budget(cmd, first, r.pairs.Fewest()); err != nil {
		return nil, err
	}
	if r.client, err = s.FollowClient(); err != nil {
		return nil, err
	}
	if r.namespace, err = s.Team(f.namespace); err != nil {
		return nil, err
	}
	before, err := r.newest(cmd.Context(), first.GetOld())
	if err != nil {
		return nil, err
	}
	after, err := r.newest(cmd.Context(), first.GetNew())
	if err != nil {
		return nil, err
	}
	r.what = comparison.NewRerun(before, after)
	r.result = &baiv1.CompareRunsResponse{
		Old: &baiv1.ComparedSide{Operand: first.GetOld().GetOperand()},
		New: &baiv1.ComparedSide{Operand: first.GetNew().GetOperand()},
	}
	return r, nil
}

// newest returns the run of a side that is repeated.
func (r *rerunner) newest(ctx context.Context, side *baiv1.ComparedSide) (*baiv1.Run, error) {
	ids := side.GetRunIds()
	if len(ids) == 0 {
		return nil, &comparison.MismatchError{Message: side.GetOperand() + " has no run that could be repeated"}
	}
	run, err := r.client.Get(ctx, ids[len(ids)-1])
	if err == nil && run.GetDescriptorToml() == "" {
		err = fmt.Errorf("repeat run %q: the platform does not have its descriptor any more", run.GetId())
	}
	return run, err
}

// run makes pairs until the verdict stands, and returns why it stopped.
func (r *rerunner) run(ctx context.Context) (why string, err error) {
	lost := 0
	for pair := 0; ; pair++ {
		switch {
		case r.pairs.Stand():
			return "the verdict stands", nil
		case lost == maxLost:
			return fmt.Sprintf("%d pairs in a row have no values", lost), nil
		case r.submitted+2 > r.maxRuns:
			return fmt.Sprintf("no pair is left of --max-runs %d", r.maxRuns), nil
		case !r.budget.Allows():
			return fmt.Sprintf("a further pair would exceed --max-cost, after %s", r.budget.Text()), nil
		}
		found, err := r.pair(ctx, pair)
		if err != nil {
			return "", err
		}
		if found == nil {
			lost++
			continue
		}
		lost, r.last = 0, found
		r.pairs.Add(found)
	}
}

// pair makes the runs of a pair, and returns their comparison; nil if one of them has no values.
func (r *rerunner) pair(ctx context.Context, pair int) (*baiv1.CompareRunsResponse, error) {
	made := r.submitted
	var base, other string
	for ordinal := 2 * pair; ordinal < 2*pair+2; ordinal++ {
		run, err := r.one(ctx, ordinal)
		if err != nil {
			return nil, err
		}
		side := r.result.GetNew()
		if r.what.IsOld(ordinal) {
			side, base = r.result.GetOld(), run.GetId()
		} else {
			other = run.GetId()
		}
		if run.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			side.Excluded = append(side.GetExcluded(), &baiv1.ExcludedRun{RunId: run.GetId(), Reason: "it " + printer.Status(run)})
			side.ExcludedCount++
			r.budget.Spend(nil, r.submitted-made)
			return nil, nil
		}
	}
	metrics := append(r.pairs.Metrics(), comparison.CostMetric)
	found, err := r.client.Compare(ctx, &baiv1.CompareRunsRequest{Old: base, New: other, Namespace: r.namespace, Metrics: metrics})
	r.budget.Spend(found, 2)
	if refused, ok := errors.AsType[*bai.InvalidError](err); ok {
		r.note(refused.Message)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before, after := r.result.GetOld(), r.result.GetNew()
	before.RunIds, after.RunIds = append(before.GetRunIds(), base), append(after.GetRunIds(), other)
	return found, nil
}

// one submits a run, and waits until its results are summarised.
func (r *rerunner) one(ctx context.Context, ordinal int) (*baiv1.Run, error) {
	side := "new"
	if r.what.IsOld(ordinal) {
		side = "old"
	}
	got, err := r.client.Submit(ctx, r.what.Submission(ordinal))
	if err != nil {
		return nil, fmt.Errorf("repeat the %s run: %w", side, err)
	}
	for _, w := range got.Warnings {
		r.note(w.GetMessage())
	}
	r.submitted++
	r.current = got.RunID
	r.session.Screen.Live(fmt.Sprintf("pair %d: waiting for the %s run %s", ordinal/2+1, side, got.RunID))
	run, err := r.client.Wait(ctx, got.RunID)
	for err == nil && run.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED {
		var all *baiv1.GetSummariesResponse
		if all, err = r.client.Summaries(ctx, got.RunID); err != nil || !all.GetPending() {
			break
		}
		select {
		case <-time.After(summaryPause):
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return run, err
}

// note prints a sentence once.
func (r *rerunner) note(text string) {
	if !r.warned[text] {
		r.warned[text] = true
		r.session.Screen.Note("baictl: " + printer.Clean(text))
	}
}

// response returns what the pairs say.
func (r *rerunner) response(why string) *baiv1.CompareRunsResponse {
	r.result.Series, r.result.Differences = r.pairs.Series(), r.last.GetDifferences()
	r.result.Notes = append(r.last.GetNotes(), fmt.Sprintf("by %s that repeat %s and %s (label compares=%s): %s",
		printer.Plural(len(r.result.GetOld().GetRunIds()), "pair"), r.what.Old.GetId(), r.what.New.GetId(), r.what.ID, why))
	return r.result
}

// command returns the command that goes on.
func (f compareFlags) command(base, other string) string {
	words := []string{"baictl compare", repeat.Quote(base), repeat.Quote(other), "--rerun", fmt.Sprintf("--max-runs %d", f.maxRuns)}
	for _, name := range f.metrics {
		words = append(words, "--metric", repeat.Quote(name))
	}
	for _, flag := range [][2]string{{"--min-change", f.minChange.String()}, {"--max-cost", f.maxCost}, {"--namespace", f.namespace}} {
		if flag[1] != "" {
			words = append(words, flag[0], repeat.Quote(flag[1]))
		}
	}
	return strings.Join(words, " ")
}
