package watcher_test

import "github.com/benchmark-ai/bai/services/watcher/verdicttest"

// Builders of objects, by short names: the tests are tables of them.
var (
	at               = verdicttest.At
	collectorRunning = verdicttest.CollectorRunning
	complete         = verdicttest.Complete
	disrupted        = verdicttest.Disrupted
	ended            = verdicttest.Ended
	eventLines       = verdicttest.EventLines
	exits            = verdicttest.Exits
	failed           = verdicttest.Failed
	homeless         = verdicttest.Homeless
	job              = verdicttest.Job
	jobDeleting      = verdicttest.JobDeleting
	newPod           = verdicttest.NewPod
	podOf            = verdicttest.PodOf
	pods             = verdicttest.Pods
	readyNode        = verdicttest.ReadyNode
	runs             = verdicttest.Runs
	scheduled        = verdicttest.Scheduled
	unwrapped        = verdicttest.Unwrapped
)
