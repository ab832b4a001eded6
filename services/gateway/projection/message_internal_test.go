package projection

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestCodeThatWasSentAlongIsNoDataSet(t *testing.T) {
	t.Parallel()
	code := pod.Code(event.Bundle{SHA256: strings.Repeat("ab", 32), Size: 1})
	set := event.Data{Source: "https://example.com/a", Path: "/data/a"}
	for want, data := range map[string][]event.Data{
		"no data sets to fetch":                                       nil,
		"the code that was sent along is stored":                      {code},
		"fetched 1 data set; the code that was sent along is stored":  {set, code},
		"fetched 2 data sets; the code that was sent along is stored": {set, set, code},
		"fetched 2 data sets":                                         {set, set},
	} {
		if got := fetchedMessage(data); got != want {
			t.Errorf("%d data: %q, want %q", len(data), got, want)
		}
	}
}
