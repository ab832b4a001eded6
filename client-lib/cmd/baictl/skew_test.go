package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestAnOlderPlatformSaysWhatItDoesNotUnderstand(t *testing.T) {
	p := baitest.StartOld(t)
	id := p.Add(&baiv1.Run{Name: "r", Owner: "ann", DescriptorToml: helloText, Origination: &baiv1.Origination{Uri: "stored:x@1"}})
	for args, says := range map[string]string{
		"submit good.toml --set hardware.gpus=1": "is older than this client: it does not understand values put in place of the descriptor's (revision 2 of the API; it has 1)",
		"rerun r":                                "is older than this client: it does not understand where a descriptor came from",
		"list --text x":                          "is older than this client: it does not understand a list by text",
		"list --framework jax":                   "is older than this client: it does not understand a list by framework (revision 6 of the API; it has 1)",
		"list --data-id mnist":                   "is older than this client: it does not understand a list by the ID of data",
		"list --sort oldest":                     "is older than this client: it does not understand a list in another order",
		"logs r --since 5m":                      "is older than this client: it does not understand lines since a time",
		"logs r --grep x":                        "is older than this client: it does not understand a search for lines (revision 5 of the API; it has 1)",
		"metrics --task x":                       "is older than this client: it does not understand samples of many runs",
		"metrics r --since 5m":                   "is older than this client: it does not understand samples of a time",
		"validate stored:x":                      "is older than this client: it has no DescriptorService",
		"render --server good.toml":              "is older than this client: it has no DescriptorService",
		"descriptors list":                       "is older than this client: it has no DescriptorService",
		"set list":                               "is older than this client: it has no SetService",
		"set get x":                              "is older than this client: it has no SetService",
	} {
		expect(t, runPiped(t, p.Addr(), strings.Fields(args)...), 3, says)
	}
	if n := p.Calls("SubmitRun") + p.Calls("ListRuns") + p.Calls("StreamLogs") + p.Calls("QueryMetrics"); n != 0 {
		t.Errorf("%d calls went to a platform that would have done less than was asked", n)
	}
	for _, args := range []string{"submit good.toml", "list", "get r", "why " + id, "repro r", "logs r", "metrics r", "cancel r"} {
		expect(t, runPiped(t, p.Addr(), strings.Fields(args)...), 0, "")
	}
	expect(t, runPiped(t, p.Addr(), "version"), 0, fmt.Sprintf("baictl: the platform is older: it understands revision 1 of the API, this baictl %d", baiv1.Revision))
}

func TestANewerPlatformWorks(t *testing.T) {
	p := newFixture(t, newYear)
	p.SetRevision(baiv1.Revision + 1)
	for _, args := range []string{"submit good.toml --set hardware.gpus=1", "list --text hello", "rerun hello", "metrics --task hello"} {
		expect(t, runPiped(t, p.Addr(), strings.Fields(args)...), 0, "")
	}
	expect(t, runPiped(t, p.Addr(), "version"), 0, fmt.Sprintf("this baictl is older: it understands revision %d of the API, the platform %d; everything that it has works", baiv1.Revision, baiv1.Revision+1))
}
