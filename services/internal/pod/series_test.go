package pod_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestThePodsOfARunShareItsSeries(t *testing.T) {
	t.Parallel()
	if got := pod.SeriesLimit(true, 0); got != pod.MaxSeries {
		t.Errorf("a pod alone has %d", got)
	}
	for _, others := range []int{1, 2, 16, 999, pod.MaxSeries / 2} {
		all, each := pod.SeriesLimit(true, others), pod.SeriesLimit(false, others)
		if all += others * each; all > pod.MaxSeries || each < 1 || pod.MaxSeries-all > others {
			t.Errorf("with %d others a pod has %d, and all together have %d", others, each, all)
		}
	}
}
