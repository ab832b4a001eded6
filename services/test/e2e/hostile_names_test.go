package e2e_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TestHostileDescriptorsReadNoSecretOfAnotherRun: a descriptor names the Secret with the
// token of another run's pod while that pod exists, and a secret of the machine that no
// setting allows.
func TestHostileDescriptorsReadNoSecretOfAnotherRun(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "2", "--config", writeTemp(t, "[executor.pods.allow.default]\nsecrets = [\"*ine\"]\n[executor.pods.allow.vision]\nsecrets = [\"*\"]\n"))
	victim := p.submit(script("until [ -e " + t.TempDir() + "/never ]; do sleep 0.1; done"))
	p.awaitPhase(victim, baiv1.Phase_PHASE_RUNNING)
	for name, tt := range map[string]struct{ ref, namespace, want string }{
		"another run's Secret":                          {"bai-" + victim + "-1/collect.json", "vision", "BAI0045"},
		"a secret that only another namespace may name": {"theirs/key", "default", "BAI0046"},
	} {
		text := strings.Replace(script("env"), "[ml]", "secrets = { STOLEN = '"+tt.ref+"' }\n[ml]", 1)
		_, err := p.api.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(text), Owner: "tester", Namespace: tt.namespace}, grpc.WaitForReady(true))
		if got := codesOf(err); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %v: %v, want %s", name, got, err, tt.want)
		}
	}
	p.wantCode(0, "cancel", victim)
}

// codesOf are the codes of the faults that an answer carries.
func codesOf(err error) []string {
	var codes []string
	for _, detail := range status.Convert(err).Details() {
		if f, ok := detail.(*baiv1.Fault); ok {
			codes = append(codes, f.GetCode())
		}
	}
	return codes
}
