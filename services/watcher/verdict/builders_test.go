package verdict_test

import "github.com/benchmark-ai/bai/services/watcher/verdicttest"

// Builders of objects, by short names: the tests are tables of them.
var (
	apart             = verdicttest.Apart
	at                = verdicttest.At
	clusterMessage    = verdicttest.ClusterMessage
	collectorRunning  = verdicttest.CollectorRunning
	complete          = verdicttest.Complete
	containerNotFound = verdicttest.ContainerNotFound
	counts            = verdicttest.Counts
	deadline          = verdicttest.Deadline
	deleting          = verdicttest.Deleting
	disrupted         = verdicttest.Disrupted
	ended             = verdicttest.Ended
	eventLines        = verdicttest.EventLines
	events            = verdicttest.Events
	exits             = verdicttest.Exits
	failed            = verdicttest.Failed
	grace             = verdicttest.Grace
	homeless          = verdicttest.Homeless
	job               = verdicttest.Job
	jobDeleting       = verdicttest.JobDeleting
	limit             = verdicttest.Limit
	newPod            = verdicttest.NewPod
	podOf             = verdicttest.PodOf
	pods              = verdicttest.Pods
	readyNode         = verdicttest.ReadyNode
	reason            = verdicttest.Reason
	runs              = verdicttest.Runs
	scheduled         = verdicttest.Scheduled
	scheduler         = verdicttest.Scheduler
	target            = verdicttest.Target
	unscheduled       = verdicttest.Unscheduled
	unwrapped         = verdicttest.Unwrapped
	verdictLine       = verdicttest.VerdictLine
	waiting           = verdicttest.Waiting
)
