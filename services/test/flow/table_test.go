package flow_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// serviceTopics is a row of the table: topics, in the order of the flow.
type serviceTopics struct{ Consumes, Publishes []string }

// readTable reads the table of services, by service, from its text about topics.
func readTable(t *testing.T) map[string]serviceTopics {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "| service | hears | does | says |\n|---|---|---|---|\n")
	if !ok {
		t.Fatal("services/README.md has no table of services")
	}
	topic := regexp.MustCompile("`(bai\\.[a-z]+)`")
	topics := func(cell string) []string {
		var names []string
		for _, m := range topic.FindAllStringSubmatch(cell, -1) {
			names = append(names, m[1])
		}
		if got := inOrder(names); len(got) != len(names) {
			t.Errorf("services/README.md names topics that are none, or one of them twice: %q", cell)
		}
		return inOrder(names)
	}
	table := make(map[string]serviceTopics)
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("services/README.md has a row of %d cells, want 4: %q", len(cells), line)
		}
		table[strings.TrimSpace(cells[0])] = serviceTopics{Consumes: topics(cells[1]), Publishes: topics(cells[3])}
	}
	return table
}

func TestTheTableOfServicesSaysWhatEachHearsAndSays(t *testing.T) {
	b := newTopicRecorder()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, b)
		defer w.start(w.services())()
		for _, scene := range scenarios() {
			scene.play(w)
			w.awaitQuiescence()
		}
	})
	synctest.Test(t, func(t *testing.T) { runGatewayAlone(newFixture(t, b)) })
	got := make(map[string]serviceTopics)
	for _, name := range []string{
		gatewayService, fetcherService, executorService, pullerService, watcherService, collectService, indexService, summaryService, analystService, recordService,
	} {
		got[name] = b.topicsOf(name)
	}
	wantGranted(t, got)
	if diff := cmp.Diff(readTable(t), got); diff != "" {
		t.Errorf("services/README.md says what is not so (-README +heard):\n%s", diff)
	}
}

// wantGranted compares the rights that an operator gives to services with their topics.
func wantGranted(t *testing.T, recorded map[string]serviceTopics) {
	t.Helper()
	for name, r := range recorded {
		part, _, _ := strings.Cut(name, " ")
		if name == pullerService || name == collectService {
			part = access.Pods
		}
		may := make(map[string]bool)
		for _, right := range (access.Principals{part: {"User:x"}}).ACLs() {
			may[right.Operation+" "+right.Name] = true
		}
		for operation, topics := range map[string][]string{"Read": r.Consumes, "Write": r.Publishes} {
			for _, topic := range topics {
				if !may[operation+" "+topic] {
					t.Errorf("%s needs to %s %s, and no right lets it", name, strings.ToLower(operation), topic)
				}
			}
		}
	}
}

// runGatewayAlone runs a gateway whose runs no service takes: one that is given up, and
// one that was canceled meanwhile.
func runGatewayAlone(w *fixture) {
	w.t.Helper()
	defer w.start(w.gateway())()
	canceled, forgotten := w.submit(""), w.submit("")
	w.cancel(canceled)
	w.awaitPhase(forgotten, event.PhaseFinished)
}
