package executor_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
)

// fakeRegistry returns its answers one after another, and is unavailable after the
// last.
type fakeRegistry struct {
	mu      sync.Mutex
	answers []cluster.Image
	queries int
}

func (r *fakeRegistry) Image(_ context.Context, q cluster.ImageQuery) (cluster.Image, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queries++
	image := cluster.Image{UnreadReason: "example.org answers 503 Service Unavailable"}
	if len(r.answers) > 0 {
		image, r.answers = r.answers[0], r.answers[1:]
	}
	image.Name = q.Name
	return image, nil
}

// entrypointRun returns a run whose descriptor has no command.
func entrypointRun(run string) event.Fetched {
	ev := fetched(run)
	ev.Descriptor = ev.Descriptor[:strings.Index(ev.Descriptor, "[ml]")]
	return ev
}

// launchEntrypoint runs a run that uses its image's entrypoint and fails once for a
// reason of class infra. It returns the images and commands of the attempts, and the
// messages of their launches.
func launchEntrypoint(t *testing.T, r *fakeRegistry, run event.Fetched) (images []string, commands [][]string, words []string) {
	t.Helper()
	w := newFixture(t)
	w.images = r
	w.infraFailures["bai-"+run.Run+"-1"] = true
	w.cluster.refuse = func(o cluster.Object) error {
		if j, ok := o.(*batchv1.Job); ok {
			c := j.Spec.Template.Spec.Containers[0]
			images, commands = append(images, c.Image), append(commands, slices.Concat(c.Command, c.Args))
		}
		return nil
	}
	stop := w.start(executor.Settings{Slots: 1, Engine: plan.EngineKubernetes})
	w.publish(run)
	time.Sleep(10 * time.Second)
	stop()
	w.assertClean(t)
	for _, s := range published[event.Status](t, w.broker) {
		if s.Phase == event.PhaseLaunching {
			words = append(words, s.Message)
		}
	}
	if len(commands) != 2 || len(words) != 2 {
		t.Fatalf("%d attempts, %d words", len(commands), len(words))
	}
	return images, commands, words
}

func TestARegistryThatIsAwayLaterChangesNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRegistry{answers: []cluster.Image{{Digest: "sha256:abc", Entrypoint: []string{"/run"}, Cmd: []string{"-v"}}}}
		images, commands, words := launchEntrypoint(t, r, entrypointRun("r1"))
		if r.queries != 1 {
			t.Errorf("the registry was asked %d times", r.queries)
		}
		for i := range commands {
			if images[i] != "debian:12@sha256:abc" || strings.Join(commands[i], " ") != "/bai/bin/bai-pod exec -- /run -v" {
				t.Errorf("attempt %d: %s %q", i+1, images[i], commands[i])
			}
			if !strings.Contains(words[i], "image debian:12 runs its entrypoint, as its registry gives it for sha256:abc") {
				t.Errorf("attempt %d: %s", i+1, words[i])
			}
		}
	})
}

func TestARunWhoseRegistryGivesNoAnswerSaysWhyItsLogIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRegistry{}
		images, commands, words := launchEntrypoint(t, r, entrypointRun("r1"))
		if r.queries != 1 {
			t.Errorf("the registry was asked %d times", r.queries)
		}
		for i := range commands {
			if images[i] != "debian:12" || len(commands[i]) > 0 {
				t.Errorf("attempt %d: %s %q", i+1, images[i], commands[i])
			}
			if !strings.Contains(words[i], "the output is read from the container's log: example.org answers 503") {
				t.Errorf("attempt %d: %s", i+1, words[i])
			}
		}
	})
}

func TestARunWithACommandAsksNoRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRegistry{}
		if launchEntrypoint(t, r, fetched("r1")); r.queries != 0 {
			t.Errorf("the registry was asked %d times", r.queries)
		}
	})
}

// registries returns the clients of registries of an executor with one engine.
func registries(of plan.Images) map[string]plan.Images {
	if of == nil {
		return nil
	}
	return map[string]plan.Images{"": of}
}
