package launch

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/repeat"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Rerun is the verb rerun.
func Rerun(s *session.Session) *cobra.Command {
	var w submitFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "rerun RUN",
		Short: "Submit a run again, as it was",
		Long: `Submits a run again with the descriptor, the labels, the team and the code that
it had, and prints the ID of the new run. --set, --label, --namespace and
--script change that. See baictl repro for what may differ all the same.

With -o json or yaml: as baictl submit.`,
		Example:           `  baictl rerun 01kdyt1q880000000000000001 --set hardware.gpus=8`,
		Args:              session.Arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.OneRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return rerun(cmd, s, w, args[0], wait) },
	}
	w.flags(cmd, s)
	cmd.PersistentFlags().BoolVar(&wait, "wait", false, "wait for the end of the run")
	return session.WithNoun(cmd)
}

func rerun(cmd *cobra.Command, s *session.Session, w submitFlags, name string, wait bool) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	run, err := c.Get(cmd.Context(), name)
	if err != nil {
		return err
	}
	if run.GetDescriptorToml() == "" {
		return fmt.Errorf("rerun %q: the platform does not have its descriptor any more", name)
	}
	submission, err := w.rerunSubmission(cmd, s, run, labels(run))
	if err != nil {
		return err
	}
	if w.script != "" {
		if submission.Script, err = w.uploadScript(cmd.Context(), s, c); err != nil {
			return err
		}
	}
	got, err := submitOne(cmd.Context(), s, c, submission)
	if err != nil {
		return err
	}
	if err := printSubmitted(s, []submitResult{got}); err != nil || !wait {
		return err
	}
	return await(cmd, s, []submitResult{got})
}

// labels are those that the run's request gave it.
func labels(run *baiv1.Run) map[string]string {
	doc := input.Document{Name: run.GetDescriptorFile(), Text: []byte(run.GetDescriptorToml())}
	return repeat.Labels(run, doc.Check(nil, false).Descriptor)
}
