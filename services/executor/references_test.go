package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
)

// runReferencing returns a run whose descriptor names a Secret and a claim.
func runReferencing(secret, claim string) event.Fetched {
	run := fetched("r1")
	run.Descriptor = strings.Replace(descriptor, "[env]", "[env]\nsecrets = { TOKEN = \""+secret+"/key\" }", 1) + "\n[[volumes]]\npath = \"/models\"\nclaim = \"" + claim + "\"\n"
	return run
}

func TestARunThatNamesAnObjectWhichItMayNotNameIsNeverLaunched(t *testing.T) {
	type lists = map[string]descriptors.Allowlist
	labels := map[string]map[string]string{
		"Secret registry": {"allow": "runs"}, "PersistentVolumeClaim models": {"allow": "runs"},
		"Secret billing": {"allow": "nobody"}, "Secret bai-r2-1": {"allow": "runs"},
	}
	byLabel := lists{"*": {Labels: []string{"allow=all", "allow=runs"}}}
	onNode := fetched("r1")
	onNode.Descriptor = strings.Replace(descriptor, "[env]", "[network]\nhost_network = true\n[env]", 1)
	for name, tt := range map[string]struct {
		run   event.Fetched
		allow lists
		want  string // part of the message of its end; empty if it is launched
	}{
		"without an entry":                  {runReferencing("registry", "models"), nil, `env.secrets.TOKEN: descriptors of the namespace "pets" may not name the Secret "registry" (the platform's settings have to allow it: [executor.pods.allow."pets"] secrets = ["registry"])`},
		"a claim that settings do not name": {runReferencing("registry", "models"), lists{"*": {Secrets: []string{"*"}}}, `volumes[0].claim: descriptors of the namespace "pets" may not name the PersistentVolumeClaim "models"`},
		"what settings name":                {runReferencing("registry", "models"), lists{"pets": {Secrets: []string{"reg*"}, Claims: []string{"models"}}}, ""},
		"another namespace's":               {runReferencing("registry", "models"), lists{"vision": {Secrets: []string{"*"}, Claims: []string{"*"}}}, "may not name the Secret"},
		"the platform's, of another run":    {runReferencing("bai-r2-1", "models"), lists{"*": {Secrets: []string{"*"}, Claims: []string{"*"}}}, "platform's own objects"},
		"the platform's, with a label":      {runReferencing("bai-r2-1", "models"), byLabel, "platform's own objects"},
		"a claim of another run's":          {runReferencing("registry", "bai-r2-1-data"), lists{"*": {Secrets: []string{"*"}, Claims: []string{"*"}}}, "platform's own objects"},
		"what has one of the labels":        {runReferencing("registry", "models"), byLabel, ""},
		"what has another label":            {runReferencing("billing", "models"), byLabel, "the label allow=all or allow=runs"},
		"a right that settings do not give": {onNode, lists{"*": {Rights: []string{"mtu"}}}, `network.host_network: pods of the namespace "pets" may not have the right host_network (the platform's settings have to allow it: [executor.pods.allow."pets"] rights = ["host_network"])`},
		"a right that settings give":        {onNode, lists{"pets": {Rights: []string{"host_network"}}}, ""},
		"what is not there":                 {runReferencing("none", "models"), byLabel, "the label allow=all or allow=runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				w.cluster.labels = labels
				s := executor.Settings{Engine: plan.EngineKubernetes}
				s.Pods.Allow = tt.allow
				stop := w.start(s)
				w.publish(tt.run)
				time.Sleep(10 * time.Second)
				stop()
				wantRefused(t, w, tt.want)
			})
		})
	}
}

// wantRefused checks the reason why the run was refused. Empty means that it was
// launched.
func wantRefused(t *testing.T, w *fixture, why string) {
	t.Helper()
	launched, ended := published[event.Launched](w.t, w.broker), published[event.Finished](w.t, w.broker)
	if why == "" {
		if len(launched) != 1 || len(ended) != 1 || ended[0].Outcome != event.Succeeded {
			t.Errorf("launched %d times, ended %+v", len(launched), ended)
		}
		return
	}
	if len(launched) != 0 || w.cluster.count("Job") != 0 {
		t.Errorf("launched %d times", len(launched))
	}
	if len(ended) == 0 || ended[0].Class != event.ClassUser || ended[0].Reason != event.InvalidDescriptor || !strings.Contains(ended[0].Message, why) {
		t.Errorf("ended %+v, want %q", ended, why)
	}
}

func TestTheLocalClusterAllowsSecretsAsOthersDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		s := executor.Settings{}
		s.Pods.Allow = map[string]descriptors.Allowlist{"pets": {Secrets: []string{"mine"}}}
		stop := w.start(s)
		own, other := fetched("r1"), fetched("r2")
		own.Descriptor = strings.Replace(descriptor, "[env]", "[env]\nimage_pull_secret = \"not-read\"\nsecrets = { TOKEN = \"mine/key\" }", 1)
		other.Descriptor = strings.Replace(descriptor, "[env]", "[env]\nsecret_files = { \"/root/key\" = \"other/key\" }", 1)
		w.publish(own)
		w.publish(other)
		time.Sleep(10 * time.Second)
		stop()
		launched, ended := published[event.Launched](w.t, w.broker), published[event.Finished](w.t, w.broker)
		if len(launched) != 1 || launched[0].Run != "r1" || len(ended) != 2 || outcomes(ended)["r1"] != event.Succeeded || outcomes(ended)["r2"] != event.Failed {
			t.Errorf("launched %+v, ended %+v", launched, ended)
		}
	})
}

func outcomes(ended []event.Finished) map[string]event.Outcome {
	all := map[string]event.Outcome{}
	for _, f := range ended {
		all[f.Run] = f.Outcome
	}
	return all
}
