package follow

import (
	"testing"

	"github.com/benchmark-ai/bai/descriptors"
)

func TestWhatIsFollowedHasHalfOfTheSeriesOfItsPod(t *testing.T) {
	t.Parallel()
	mpi := descriptors.Hardware{Strategy: descriptors.MPI, Distributed: descriptors.Distributed{NumInstances: 16}}
	for name, tt := range map[string]struct {
		hardware descriptors.Hardware
		role     string
		want     int
	}{
		"a benchmark alone": {descriptors.Hardware{Strategy: descriptors.SingleNode}, "benchmark", 7500},
		"a server":          {descriptors.Hardware{Strategy: descriptors.Inference}, "server", 3750},
		"a launcher":        {mpi, "benchmark", 3750},
		"a worker":          {mpi, "worker", 234},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := seriesOf(&descriptors.Descriptor{Hardware: tt.hardware}, tt.role); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
