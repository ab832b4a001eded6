package runs

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestARunThatGoesOnForADayWithoutADeadlineHasAHint(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	const endlessText = "spec_version = \"1.0\"\n[info]\ndescription = \"d\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"x/y:1\"\n[ml]\nbenchmark_code = \"sleep 9\"\n"
	for name, tt := range map[string]struct {
		phase baiv1.Phase
		text  string
		after time.Duration
		want  string
	}{
		"after a day":                   {baiv1.Phase_PHASE_RUNNING, endlessText, 25 * time.Hour, "running for 25h00m without limits.deadline; baictl cancel r1 ends it"},
		"not before":                    {baiv1.Phase_PHASE_RUNNING, endlessText, 23 * time.Hour, ""},
		"not with a deadline":           {baiv1.Phase_PHASE_RUNNING, endlessText + "[limits]\ndeadline = \"100h\"\n", 25 * time.Hour, ""},
		"not after its end":             {baiv1.Phase_PHASE_FINISHED, endlessText, 25 * time.Hour, ""},
		"not where nothing is known":    {baiv1.Phase_PHASE_RUNNING, "", 25 * time.Hour, ""},
		"not of a text that is no TOML": {baiv1.Phase_PHASE_RUNNING, "=", 25 * time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := &baiv1.Run{Id: "r1", Phase: tt.phase, StartTime: timestamppb.New(began), DescriptorFile: "a.toml", DescriptorToml: tt.text}
			if got := longRunHint(run, began.Add(tt.after)); got != tt.want {
				t.Errorf("hint %q, want %q", got, tt.want)
			}
		})
	}
}
