package cause_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/cause"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestTheFirstSubjectThatDiffersGivesTheClass(t *testing.T) {
	base := store.PointRun{
		Version: "1.2.3", Image: "team/app:1", Images: []string{"sha256:aaaa"}, Descriptor: "d1", Data: "x1", Code: "c1", Platform: "v2",
		Machine: "m1", Hardware: "Xeon, 8 CPUs", Nodes: []string{"n1"},
	}
	for name, tt := range map[string]struct {
		change func(p *store.PointRun)
		want   incident.Cause
		first  string
	}{
		"another version":                           {func(p *store.PointRun) { p.Version = "1.2.4" }, incident.CauseRegression, "the version changed from 1.2.3 to 1.2.4"},
		"another image":                             {func(p *store.PointRun) { p.Images = []string{"sha256:bbbb"} }, incident.CauseRegression, "the image changed from team/app:1 sha256:aaaa to team/app:1 sha256:bbbb"},
		"other code":                                {func(p *store.PointRun) { p.Code = "c2" }, incident.CauseRegression, "the code changed from sha256:c1 to sha256:c2"},
		"a version comes with its descriptor":       {func(p *store.PointRun) { p.Version, p.Descriptor = "1.2.4", "d2" }, incident.CauseRegression, "the version changed from 1.2.3 to 1.2.4"},
		"another descriptor":                        {func(p *store.PointRun) { p.Descriptor = "d2" }, incident.CauseMethod, "the descriptor changed from sha256:d1 to sha256:d2"},
		"another platform":                          {func(p *store.PointRun) { p.Platform = "v3" }, incident.CauseMethod, "the platform changed from v2 to v3"},
		"other data hide another version":           {func(p *store.PointRun) { p.Data, p.Version = "x2", "1.2.4" }, incident.CauseMethod, "the data changed from sha256:x1 to sha256:x2"},
		"other machines hide everything":            {func(p *store.PointRun) { p.Machine, p.Hardware, p.Data, p.Version = "m2", "Epyc, 8 CPUs", "x2", "2" }, incident.CauseEnvironment, "the machine changed from Xeon, 8 CPUs to Epyc, 8 CPUs"},
		"another node":                              {func(p *store.PointRun) { p.Nodes = []string{"n2"} }, incident.CauseEnvironment, "the nodes changed from n1 to n2"},
		"nothing differs":                           {func(*store.PointRun) {}, incident.CauseEnvironment, "version, image, code, data, descriptor and platform are the same before and after it"},
		"what is not known does not differ":         {func(p *store.PointRun) { p.Version, p.Machine = "", "" }, incident.CauseEnvironment, "version, image, code, data, descriptor and platform are the same before and after it"},
		"an image without digest has the same name": {func(p *store.PointRun) { p.Images = nil; p.Nodes = nil }, incident.CauseInsufficient, "it is not known whether the same was measured: the runs have no label version and no digests of their images"},
	} {
		t.Run(name, func(t *testing.T) {
			after := base
			tt.change(&after)
			got, reasons := cause.Of(base, after)
			if got != tt.want || len(reasons) == 0 || reasons[0] != tt.first {
				t.Errorf("%s %q", got, reasons)
			}
		})
	}
}

func TestNothingIsKnownOfRunsWithoutAttributes(t *testing.T) {
	got, reasons := cause.Of(store.PointRun{}, store.PointRun{})
	if diff := cmp.Diff(incident.CauseInsufficient, got); diff != "" || len(reasons) != 1 {
		t.Error(diff, reasons)
	}
}
