package summarise_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
)

func TestWhatIsToBeDoneForARunThatIsOver(t *testing.T) {
	s := summarise.Settings{GracePeriod: 10 * time.Minute, AllowedLateness: 24 * time.Hour}
	const m, h = time.Minute, time.Hour
	for name, tt := range map[string]struct {
		waited summarise.WaitCase
		want   string
	}{
		"all is there": {summarise.WaitCase{Since: m, Changed: m, Seen: 1, Now: 5, Summed: -1, Complete: true}, "whole"},
		"all is there after part of it was summarised":              {summarise.WaitCase{Since: 20 * h, Changed: 19 * h, Seen: 5, Now: 9, Summed: 5, Complete: true}, "whole"},
		"nothing has come for a while":                              {summarise.WaitCase{Since: 9 * m, Changed: 9 * m, Seen: 5, Now: 5, Summed: -1}, "wait"},
		"nothing has come for long":                                 {summarise.WaitCase{Since: 10 * m, Changed: 10 * m, Seen: 5, Now: 5, Summed: -1}, "part"},
		"of a run without samples nothing has come for long":        {summarise.WaitCase{Since: 10 * m, Changed: 10 * m, Summed: -1}, "part"},
		"more comes, long after the end":                            {summarise.WaitCase{Since: 5 * h, Changed: 9 * m, Seen: 5, Now: 6, Summed: -1}, "say"},
		"more comes after nothing came for long":                    {summarise.WaitCase{Since: 5 * h, Changed: h, Seen: 5, Now: 6, Summed: -1}, "say"},
		"more comes, a moment after it was said":                    {summarise.WaitCase{Since: 5 * h, Changed: m, Seen: 5, Now: 6, Summed: -1}, "wait"},
		"more came, and was said, not long ago":                     {summarise.WaitCase{Since: 5 * h, Changed: 9 * m, Seen: 6, Now: 6, Summed: -1}, "wait"},
		"part of it is summarised":                                  {summarise.WaitCase{Since: 5 * h, Changed: 4 * h, Seen: 5, Now: 5, Summed: 5}, "wait"},
		"more comes after part of it was summarised":                {summarise.WaitCase{Since: 5 * h, Changed: 4 * h, Seen: 5, Now: 6, Summed: 5}, "say"},
		"more came after part of it was summarised, and no more":    {summarise.WaitCase{Since: 5 * h, Changed: h, Seen: 6, Now: 6, Summed: 5}, "part"},
		"it is late, and what is there is summarised":               {summarise.WaitCase{Since: 24 * h, Changed: 4 * h, Seen: 5, Now: 5, Summed: 5}, "leave"},
		"it is late, and not all that is there is summarised":       {summarise.WaitCase{Since: 24 * h, Changed: m, Seen: 5, Now: 6, Summed: 5}, "part"},
		"it is late, and all is there":                              {summarise.WaitCase{Since: 30 * h, Changed: m, Seen: 5, Now: 6, Summed: 5, Complete: true}, "whole"},
		"an earlier version has noted it, and not what there was":   {summarise.WaitCase{Since: h, Changed: 1000 * h, Now: 6, Summed: -1}, "say"},
		"an earlier version has noted it, and there is nothing yet": {summarise.WaitCase{Since: h, Changed: 1000 * h, Summed: -1}, "part"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarise.Next(tt.waited, s); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestSummariesNeverTellLessThanBefore(t *testing.T) {
	part, more, all := store.Summaries{Samples: 3}, store.Summaries{Samples: 5}, store.Summaries{Samples: 5, Complete: true}
	for name, tt := range map[string]struct {
		now, before store.Summaries
		want        bool
	}{
		"more samples": {more, part, true}, "fewer samples": {part, more, false}, "as many": {part, part, false},
		"all of them": {all, more, true}, "all of them again": {all, all, true}, "part, where all were there": {more, all, false},
	} {
		if got := summarise.Better(tt.now, tt.before); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
