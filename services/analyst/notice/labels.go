package notice

// The labels of runs that notices have.
const (
	LabelCommit      = "commit"       // full hash of the commit that was measured
	LabelRepository  = "repository"   // its name, without the owner
	LabelPullRequest = "pull_request" // number
)

// LabelsOf returns those of the labels of a run that notices have; nil if it has none.
func LabelsOf(run map[string]string) map[string]string {
	var all map[string]string
	for _, name := range []string{LabelCommit, LabelRepository, LabelPullRequest} {
		if value := run[name]; value != "" {
			if all == nil {
				all = make(map[string]string)
			}
			all[name] = value
		}
	}
	return all
}
