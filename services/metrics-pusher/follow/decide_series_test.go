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
		roles    []descriptors.Role
		role     string
		want     int
	}{
		"a benchmark alone": {hardware: descriptors.Hardware{Strategy: descriptors.SingleNode}, role: "benchmark", want: 7500},
		"a server":          {hardware: descriptors.Hardware{Strategy: descriptors.Inference}, role: "server", want: 3750},
		"a launcher":        {hardware: mpi, role: "launcher", want: 3750},
		"a worker":          {hardware: mpi, role: "worker", want: 234},
		"one of four pods of roles": {
			hardware: descriptors.Hardware{Strategy: descriptors.OwnRoles}, roles: []descriptors.Role{{Name: "server", Replicas: 3}, {Name: "load", Replicas: 1}},
			role: "server", want: 1250,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := seriesOf(&descriptors.Descriptor{Hardware: tt.hardware, Roles: tt.roles}, tt.role); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
