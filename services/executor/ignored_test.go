package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestKeysWithoutEffectAreNamedOnceInEachRun(t *testing.T) {
	const plain = "starting the command with this machine's own programs (no image)"
	many := fetched("r1")
	many.Descriptor = strings.NewReplacer(
		"cpus = 1", "cpus = 1\nmemory = \"1GiB\"\nnode_selector = { disk = \"ssd\" }\ntolerations = [{ key = \"gpu\" }]",
		"[env]", "[env]\nprivileged = true\nimage_pull_secret = \"s\"\npull_policy = \"never\"",
	).Replace(descriptor)
	apart := fetched("r1")
	apart.Descriptor = strings.Replace(descriptor, "cpus = 1", "cpus = 1\nplacement = \"pack\"\npriority = \"high\"\nqueue = \"team\"\nstrategy = \"mpi\"\napart = \"node\"\ntogether = \"zone\"", 1)
	roles := fetched("r1")
	roles.Descriptor = strings.Replace(descriptor, "cpus = 1", "gpus = 0\napart = \"node\"", 1) + "\n[[roles]]\nname = \"a\"\n[[roles]]\nname = \"b\"\ncpus = 2\n"
	network := fetched("r1")
	network.Descriptor = strings.Replace(descriptor, "cpus = 1", "cpus = 1\nlimits = { ephemeral-storage = \"1GiB\" }\n[network]\nattachment = \"fast\"\nmtu = 9000", 1)
	host := fetched("r1")
	host.Descriptor = strings.Replace(descriptor, "cpus = 1", "cpus = 1\nstrategy = \"mpi\"\n[network]\nhost_network = true", 1)
	for name, tt := range map[string]struct {
		run      event.Fetched
		settings executor.Settings
		want     string
	}{
		"a run whose keys all have an effect": {fetched("r1"), executor.Settings{}, plain},
		"a run with others":                   {many, executor.Settings{}, plain + "; without effect on this machine: hardware.node_selector, hardware.tolerations, env.privileged, env.image_pull_secret, env.pull_policy"},
		"a run of several pods that one machine has": {
			apart,
			executor.Settings{},
			plain + "; without effect on this machine: hardware.placement, hardware.priority, hardware.queue, hardware.apart (all pods are on this machine and use loopback), hardware.together",
		},
		"a network that one machine has not": {
			network,
			executor.Settings{},
			plain + "; without effect on this machine: hardware.limits.ephemeral-storage, network.attachment, network.mtu (the pod is in the network of the machine)",
		},
		"the network of the machine, for several pods": {host, executor.Settings{}, plain + "; without effect on this machine: network.host_network"},
		"those of a role": {
			roles,
			executor.Settings{NoLimitsReason: "no cgroups are mounted"},
			plain + "; without effect on this machine: hardware.apart (all pods are on this machine and use loopback), roles[1].cpus (no limits: no cgroups are mounted)",
		},
		"where nothing enforces limits": {
			fetched("r1"),
			executor.Settings{NoLimitsReason: "no cgroups are mounted"},
			plain + "; without effect on this machine: hardware.cpus (no limits: no cgroups are mounted)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				stop := w.start(tt.settings)
				w.publish(tt.run)
				time.Sleep(10 * time.Second)
				stop()
				var got []string
				for _, s := range published[event.Status](w.t, w.broker) {
					if s.Phase == event.PhaseLaunching {
						got = append(got, s.Message)
					}
				}
				if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
