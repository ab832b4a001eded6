package launch

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/inject"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

func TestALaunchThatWasCutOffGoesOnWhereItEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		stop stopReason
		last slots.Transition
		want resumption
	}{
		"what may be missing is created":                          {notStopped, 0, createMissing},
		"a launch that was published is not made anew":            {notStopped, slots.Launched, findObjects},
		"a run that ended is only released":                       {notStopped, slots.Terminating, markEnding},
		"so is one that was canceled before":                      {stopCanceled, slots.Terminating, markEnding},
		"a canceled run gets no objects, and the watcher its end": {stopCanceled, 0, skipCreation},
		"the watcher's run is canceled as it is":                  {stopCanceled, slots.Launched, findObjects},
		"without a slot nothing is done":                          {stopSlotLost, slots.Launched, abandon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decideResume(tt.stop, tt.last); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestTheStoreKnowsOfAnAttemptWhatItsRunsPhaseSays(t *testing.T) {
	for name, tt := range map[string]struct {
		run  store.Run
		want slots.Transition
	}{
		"a run that is over":       {store.Run{Phase: event.PhaseFinished, Attempt: 1}, slots.Terminating},
		"a run that is launched":   {store.Run{Phase: event.PhaseRunning, Attempt: 2}, slots.Launched},
		"an earlier attempt of it": {store.Run{Phase: event.PhaseRunning, Attempt: 1}, 0},
		"a run that waits":         {store.Run{Phase: event.PhaseQueued, Attempt: 2}, 0},
		"one whose objects do":     {store.Run{Phase: event.PhaseQueued, Reason: event.NodesInUse, Attempt: 2}, slots.Launched},
		"a run of no record":       {store.Run{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastTransition(tt.run, 2); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestAnMPIJobIsSeveralJobs: the workers continue after the launcher.
func TestAnMPIJobIsSeveralJobs(t *testing.T) {
	f := event.Fetched{
		Header:     event.NewHeader("id", "r1", "pets", "ann", time.Unix(0, 0)),
		Descriptor: "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nstrategy = \"mpi\"\n[env]\ndocker_image = \"debian:12\"\n[ml]\nbenchmark_code = \"true\"\n",
	}
	for _, operator := range []bool{false, true} {
		planner := plan.New("", transpile.Settings{MPIOperator: operator}, true)
		d, _ := planner.Parse(f)
		p := makePlan(f, d, Facts{}, planner)
		if p.Jobs != 2 {
			t.Errorf("with an operator (%t) they are %d", operator, p.Jobs)
		}
	}
}

// mainObjects are the kinds and names of those objects of a plan whose end ends the run.
func mainObjects(p Plan) []string {
	var all []string
	for _, o := range p.Objects {
		if p.isMainJob(o.Object) {
			all = append(all, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
		}
	}
	return all
}

// storedPlan returns the plan of a run as it is read again.
func storedPlan(t *testing.T, f event.Fetched, planner plan.Planner) Plan {
	t.Helper()
	d, faults := planner.Parse(f)
	if d == nil {
		t.Fatal(faults)
	}
	text, err := json.Marshal(makePlan(f, d, Facts{}, planner))
	if err != nil {
		t.Fatal(err)
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTheMainObjectOfAManifestIsFoundInAStoredPlan: it is the Job or other object of the
// manifest that has the name of the attempt, also once the plan was stored.
func TestTheMainObjectOfAManifestIsFoundInAStoredPlan(t *testing.T) {
	const (
		head = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nstrategy = \"manifest\"\n[env]\ndocker_image = \"debian:12\"\n[manifest]\ncopies = 2\nobjects = \"\"\"\n"
		pods = "metadata: {name: mine}\nspec: {template: {spec: {containers: [{name: a, command: [x]}]}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n\"\"\"\n"
	)
	for name, objects := range map[string]string{
		"a Job":      "apiVersion: batch/v1\nkind: Job\n" + pods,
		"a TrainJob": "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n" + pods,
	} {
		t.Run(name, func(t *testing.T) {
			f := event.Fetched{Header: event.NewHeader("id", "r1", "pets", "ann", time.Unix(0, 0)), Descriptor: head + objects}
			planner := plan.New(plan.EngineKubernetes, transpile.Settings{Manifests: map[string]inject.Kind{"TrainJob.v1alpha1.trainer.kubeflow.org": {}}}, true)
			p := storedPlan(t, f, planner)
			found := mainObjects(p)
			_, kind, _ := strings.Cut(name, " ")
			if len(found) != 1 || found[0] != kind+" bai-r1-1" || p.Jobs != 2 {
				t.Errorf("%v of %d", found, p.Jobs)
			}
		})
	}
}
