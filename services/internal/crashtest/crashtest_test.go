package crashtest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestEveryEffectIsDiedAtBeforeAndAfterIt(t *testing.T) {
	var got []string
	for p := range crashtest.Points() {
		docs := storetest.NewMemory()
		for _, key := range []string{"a", "b"} {
			if err := store.Create(t.Context(), p.Store(docs), store.KindWatch, key, key); p.Dead() != errors.Is(err, crashtest.ErrDead) {
				t.Errorf("%s: %v", p, err)
			}
		}
		there, err := docs.Docs(t.Context(), store.KindWatch, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s: %d documents, %d effects", p, len(there), p.Effects()))
	}
	want := []string{
		"dies before effect 1: 0 documents, 1 effects", "dies after effect 1: 1 documents, 1 effects",
		"dies before effect 2: 1 documents, 2 effects", "dies after effect 2: 2 documents, 2 effects",
		"dies before effect 3: 2 documents, 2 effects", "dies after effect 3: 2 documents, 2 effects",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryEffectIsOvertakenOnce(t *testing.T) {
	var got []string
	for p := range crashtest.Overtaken() {
		text := p.String() + ":"
		p.OvertakeWith(func() { text += " overtaken" })
		for _, name := range []string{" a", " b"} {
			if err := p.Do(func() error { text += name; return nil }); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
		got = append(got, text)
	}
	want := []string{
		"is overtaken before effect 1: overtaken a b", "is overtaken before effect 2: a overtaken b", "is overtaken before effect 3: a b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAProcessThatDiedReachesNothingAndItsContextIsDone(t *testing.T) {
	for name, die := range map[string]func(p *crashtest.Process){
		"killed":       func(p *crashtest.Process) { p.Kill(); p.Kill() },
		"at an effect": func(p *crashtest.Process) { _ = p.Do(func() error { return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			p := crashtest.New(1, false)
			ctx, stop := p.Context(t.Context())
			defer stop()
			die(p)
			<-ctx.Done()
			bus := p.Bus(eventtest.NewBus(t))
			_, err := p.Store(storetest.NewMemory()).Doc(t.Context(), store.KindWatch, "a")
			for _, err := range []error{err, bus.Publish(t.Context()), bus.Publish(t.Context(), event.Command{}), p.Alive()} {
				if !errors.Is(err, crashtest.ErrDead) {
					t.Errorf("it gets %v, want ErrDead", err)
				}
			}
		})
	}
}
