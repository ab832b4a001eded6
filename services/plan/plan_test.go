package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

func TestOnlyTheLocalClusterIgnoresZones(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\naws_zone_id = \"use1-az9\"\n[env]\ndocker_image = \"alpine:3\"\n")
	local := plan.New("", transpile.Settings{}, true)
	d, faults := local.Parser().Parse("a.toml", text)
	if d == nil || len(faults.Warnings()) != 1 {
		t.Fatalf("the local cluster: %v, want one warning", faults)
	}
	if _, err := local.Render(d, text, false); err != nil {
		t.Errorf("rendered for the local cluster: %v", err)
	}
	if planned, _, err := local.Preview(t.Context(), d, text, false); err != nil || len(planned.Objects) == 0 {
		t.Errorf("planned for the local cluster: %d objects, %v", len(planned.Objects), err)
	}
	for zone, accepted := range map[string]bool{"use1-az9": true, "use1-az1": false} {
		s := plan.New(plan.EngineKubernetes, transpile.Settings{Zones: map[string]string{zone: "us-east-1a"}}, true)
		if d, faults := s.Parser().Parse("a.toml", text); (d != nil) != accepted {
			t.Errorf("a cluster that knows %s: %v", zone, faults)
		}
	}
	if d, _ := plan.New(plan.EngineKubernetes, transpile.Settings{}, true).Parser().Parse("a.toml", text); d != nil {
		t.Error("a cluster without a map knows the zone")
	}
}

func TestSettingsSayWhichSecretsTheParserOfAllLetsDescriptorsName(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"registry/token\" }\n")
	for _, engine := range []string{plan.EngineLocal, plan.EngineKubernetes} {
		s := plan.New(engine, transpile.Settings{}, true)
		_, faults := s.Parser().Parse("a.toml", text)
		if len(faults) != 1 || faults[0].Code != "BAI0046" || faults[0].Line != 8 || !strings.Contains(faults[0].Remedy, "executor.pods.allow") {
			t.Errorf("%s, without an entry: %v", engine, faults)
		}
		s.Pods.Allow = map[string]descriptors.Allowlist{"vision": {Secrets: []string{"registry"}}}
		if d, _ := s.Parser().Parse("a.toml", text); d != nil {
			t.Errorf("%s: another namespace's entry holds", engine)
		}
		d, faults := s.Parser().In("vision").Parse("a.toml", text)
		if d == nil {
			t.Fatalf("%s, with an entry: %v", engine, faults)
		}
		if _, err := s.Render(d, text, false); err != nil {
			t.Errorf("%s: rendered: %v", engine, err)
		}
		if _, _, err := s.Preview(t.Context(), d, text, false); err != nil {
			t.Errorf("%s: planned: %v", engine, err)
		}
	}
}

func TestLabelsOfNodesThatSettingsFixHoldForAllPodsAndOnNoSingleMachine(t *testing.T) {
	pods := transpile.Settings{
		NodeSelector: map[string]string{"pool": "benchmarks"},
		Tolerations:  []descriptors.Toleration{{Key: "dedicated", Operator: "Exists"}},
	}
	text := func(pool string) []byte {
		return []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nstrategy = \"mpi\"\nnode_selector = { pool = \"" + pool + "\" }\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"train\"\n")
	}
	kubernetes, local := plan.New(plan.EngineKubernetes, pods, true), plan.New(plan.EngineLocal, pods, true)
	if d, faults := kubernetes.Parser().Parse("a.toml", text("services")); d != nil || len(faults) != 1 || faults[0].Code != "BAI0038" {
		t.Errorf("other nodes at submit: %v", faults)
	}
	d, faults := local.Parser().Parse("a.toml", text("services"))
	if d == nil {
		t.Fatal(faults)
	}
	if _, err := local.Render(d, text("services"), false); err != nil {
		t.Errorf("other nodes on one machine: %v", err)
	}
	_, err := kubernetes.Render(d, text("services"), false)
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || !strings.Contains(refused.Message, "pool=benchmarks") {
		t.Errorf("other nodes at launch: %v", err)
	}
	same, _ := kubernetes.Parser().Parse("a.toml", text("benchmarks"))
	manifest, err := kubernetes.Render(same, text("benchmarks"), false)
	if n := strings.Count(string(manifest), "pool: benchmarks"); err != nil || n != 2 || strings.Count(string(manifest), "- key: dedicated") != 2 {
		t.Errorf("%d of 2 roles have the labels: %v\n%s", n, err, manifest)
	}
}

func TestAnEngineThatNoExecutorHasIsRefusedAtSubmit(t *testing.T) {
	for engine, has := range map[string]string{plan.EngineLocal: "default local", plan.EngineKubernetes: "default kubernetes"} {
		for _, named := range []string{"default", "local", "kubernetes", "aws.sagemaker"} {
			text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\nexecution_engine = \"" + named + "\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n")
			d, faults := plan.New(engine, transpile.Settings{}, true).Parser().Parse("a.toml", text)
			if want := strings.Contains(has, named); (d != nil) != want {
				t.Errorf("%s on a platform of %s: %v", named, engine, faults)
			}
		}
	}
}

func TestAProgramInCodeThatIsSentAlongIsNotLookedForOnTheMachine(t *testing.T) {
	const frame = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"env A=1 $(BAI_SCRIPTS_PATH)/run.sh\"\n"
	for name, tt := range map[string]struct {
		text     string
		withCode bool
	}{
		"the descriptor asks for it":     {text: frame + "[ml.script]\nscript = \"x.tar\"\n"},
		"the command line sends it":      {text: frame, withCode: true},
		"code of which nothing is known": {text: frame},
	} {
		t.Run(name, func(t *testing.T) {
			planner := plan.New("", transpile.Settings{}, true)
			d, faults := planner.Parser().Parse("a.toml", []byte(tt.text))
			if d == nil {
				t.Fatal(faults)
			}
			planned, _, err := planner.Preview(t.Context(), d, []byte(tt.text), tt.withCode)
			if err != nil {
				t.Fatal(err)
			}
			q := preflight.NewInquiry(preflight.Requirements{Scope: planned.Scope, Objects: planned.Objects}, preflight.Settings{})
			if diff := cmp.Diff([]string{"env"}, q.Programs); diff != "" {
				t.Errorf("programs that the machine must have (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheObjectsOfARunAreRenderedAlike(t *testing.T) {
	text := []byte("spec_version = \"0.1.0\"\n[info]\ndescription = \"hello\"\n[hardware]\ninstance_type = \"t3.small\"\n[env]\ndocker_image = \"alpine\"\n[ml]\nbenchmark_code = \"echo hello\"\n")
	d, faults := parser.Parse("a.toml", text)
	if d == nil {
		t.Fatal(faults)
	}
	var last string
	for range 3 {
		manifest, err := plan.New("", transpile.Settings{}, false).Render(d, text, false)
		if err != nil || !strings.Contains(string(manifest), "kind: Job") || last != "" && last != string(manifest) {
			t.Fatalf("rendered %q, %v", manifest, err)
		}
		last = string(manifest)
	}
}

func TestADescriptorsPlacementWinsWhereSettingsLetItNameOne(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nplacement = \"pack\"\n[env]\ndocker_image = \"alpine:3\"\n")
	for name, tt := range map[string]struct {
		engine     string
		placements []string
		accepted   bool
	}{
		"where they let it name any":    {plan.EngineKubernetes, nil, true},
		"where they let it name this":   {plan.EngineKubernetes, []string{"anywhere", "pack"}, true},
		"where they let it name others": {plan.EngineKubernetes, []string{"spread"}, false},
		"on one machine":                {plan.EngineLocal, []string{"spread"}, true},
	} {
		p := plan.New(tt.engine, transpile.Settings{Placement: "exclusive", Placements: tt.placements}, true)
		if d, faults := p.Parser().Parse("a.toml", text); (d != nil) != tt.accepted {
			t.Errorf("%s, at submit: %v", name, faults)
		}
		d, faults := parser.Parse("a.toml", text)
		if d == nil {
			t.Fatal(faults)
		}
		manifest, err := p.Render(d, text, false)
		if (err == nil) != tt.accepted {
			t.Errorf("%s, at launch: %v", name, err)
		}
		if tt.accepted && (strings.Contains(string(manifest), "podAntiAffinity") || !strings.Contains(string(manifest), "podAffinity")) {
			t.Errorf("%s: not packed:\n%s", name, manifest)
		}
	}
}

func TestADescriptorsPriorityAndQueueWinWhereSettingsLetItNameThem(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\npriority = \"high\"\nqueue = \"mine\"\n[env]\ndocker_image = \"alpine:3\"\n")
	run := event.Fetched{Header: event.NewHeader("id", "r1", "pets", "ann", time.Unix(0, 0)), Descriptor: string(text)}
	run.Namespace = "pets"
	own := []string{"priorityClassName: high", "queue-name: mine", "suspend: true"}
	for name, tt := range map[string]struct {
		engine string
		allow  descriptors.Allowlists
		want   []string // parts of the manifest; nil: the run is refused
	}{
		"where they allow both":       {plan.EngineKubernetes, descriptors.Allowlists{"pets": {Priorities: []string{"h*"}, Queues: []string{"mine"}}}, own},
		"where they allow the queue":  {plan.EngineKubernetes, descriptors.Allowlists{"*": {Queues: []string{"*"}}}, nil},
		"where they allow the others": {plan.EngineKubernetes, descriptors.Allowlists{"others": {Priorities: []string{"*"}, Queues: []string{"*"}}}, nil},
		"where they allow labels":     {plan.EngineKubernetes, descriptors.Allowlists{"*": {Labels: []string{"a=b"}}}, nil},
		"on one machine":              {plan.EngineLocal, nil, []string{"priorityClassName: low"}},
	} {
		p := plan.New(tt.engine, transpile.Settings{PriorityClass: "low", Allow: tt.allow}, true)
		if d, faults := p.Parser().In("pets").Parse("a.toml", text); (d != nil) != (tt.want != nil) {
			t.Errorf("%s, at submit: %v", name, faults)
		}
		d, faults := p.Parse(run)
		if d == nil {
			t.Fatal(faults)
		}
		if _, err := p.Objects(transpile.Input{Run: run, Descriptor: d}); (err == nil) != (tt.want != nil) {
			t.Errorf("%s, at launch: %v", name, err)
		}
		wantParts(t, name, p, d, text, tt.want)
	}
}

func TestPodsHaveTheRightsThatSettingsGiveTheirNamespace(t *testing.T) {
	network := func(table, more string) []byte {
		return []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[network]\n" + table + "\n[env]\ndocker_image = \"alpine:3\"\n" + more)
	}
	host, mtu, rdma := network("host_network = true", ""), network("mtu = 9000", ""), network("rdma = { resource = \"rdma/hca\" }", "")
	privileged := network("", "privileged = true\n")
	rights := func(namespace string, names ...string) descriptors.Allowlists {
		return descriptors.Allowlists{namespace: {Rights: names}}
	}
	for name, tt := range map[string]struct {
		text     []byte
		engine   string
		security string
		allow    descriptors.Allowlists
		accepted bool
	}{
		"host network":                  {host, plan.EngineKubernetes, transpile.Privileged, rights("pets", "host_network"), true},
		"MTU":                           {mtu, plan.EngineKubernetes, transpile.Privileged, rights("*", "mtu"), true},
		"RDMA":                          {rdma, plan.EngineKubernetes, transpile.Privileged, rights("pets", "rdma"), true},
		"host network without an entry": {host, plan.EngineKubernetes, "", nil, false},
		"MTU without an entry":          {mtu, plan.EngineKubernetes, "", nil, false},
		"RDMA without an entry":         {rdma, plan.EngineKubernetes, "", nil, false},
		"of another namespace":          {host, plan.EngineKubernetes, transpile.Privileged, rights("others", "host_network"), false},
		"another right":                 {host, plan.EngineKubernetes, transpile.Privileged, rights("pets", "mtu", "rdma", "privileged"), false},
		"on one machine":                {host, plan.EngineLocal, "", nil, true},
		"privileged, which is the cluster's to refuse": {privileged, plan.EngineKubernetes, transpile.Baseline, nil, true},
		"privileged where the cluster takes all pods":  {privileged, plan.EngineKubernetes, transpile.Privileged, nil, false},
		"privileged with an entry":                     {privileged, plan.EngineKubernetes, transpile.Privileged, rights("pets", "privileged"), true},
	} {
		run := event.Fetched{Header: event.NewHeader("id", "r1", "pets", "ann", time.Unix(0, 0)), Descriptor: string(tt.text)}
		run.Namespace = "pets"
		p := plan.New(tt.engine, transpile.Settings{Security: tt.security, Allow: tt.allow}, true)
		if d, faults := p.Parser().In("pets").Parse("a.toml", tt.text); (d != nil) != tt.accepted {
			t.Errorf("%s, at submit: %v", name, faults)
		}
		d, faults := p.Parse(run)
		if d == nil {
			t.Fatal(faults)
		}
		if _, err := p.Objects(transpile.Input{Run: run, Descriptor: d}); (err == nil) != tt.accepted {
			t.Errorf("%s, at launch: %v", name, err)
		}
	}
}

// wantParts checks that the manifest of d has all parts, and is suspended only if one of
// them says so.
func wantParts(t *testing.T, name string, p plan.Planner, d *descriptors.Descriptor, text []byte, parts []string) {
	t.Helper()
	manifest, err := p.Render(d, text, false)
	for _, part := range parts {
		if err != nil || !strings.Contains(string(manifest), part) {
			t.Errorf("%s: %v, and no %q in\n%s", name, err, part, manifest)
		}
	}
	if parts != nil && strings.Contains(string(manifest), "suspend") != slices.Contains(parts, "suspend: true") {
		t.Errorf("%s: whether it is suspended is wrong:\n%s", name, manifest)
	}
}
