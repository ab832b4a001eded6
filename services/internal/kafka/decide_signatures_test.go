package kafka

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
)

const finished = event.TopicFinished

func TestSealsAreDemandedFromWhereItIsNoted(t *testing.T) {
	t.Parallel()
	seals := SignaturePolicy{Topics: map[string][]int64{finished: {5, 0}}}
	for name, tt := range map[string]struct {
		topic     string
		partition int
		offset    int64
		want      bool
	}{
		"before the offset that is noted":          {finished, 0, 4, false},
		"at the offset that is noted":              {finished, 0, 5, true},
		"behind it":                                {finished, 0, 6, true},
		"in a partition that must have from first": {finished, 1, 0, true},
		"in a partition that was added since":      {finished, 2, 0, true},
		"on a topic that is not named":             {event.TopicFetched, 0, 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := seals.RequiresSignature(tt.topic, tt.partition, tt.offset); got != tt.want {
				t.Errorf("Demands: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTheDemandForSealsNeverShrinks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		was  map[string][]int64
		have []OffsetRange
		want []int64
	}{
		"what is there may be without":                                   {nil, []OffsetRange{{0, 7}, {2, 3}}, []int64{7, 3}},
		"an empty partition must have seals from the first on":           {nil, []OffsetRange{{0, 0}, {4, 4}}, []int64{0, 0}},
		"a topic that is not there must, too":                            {nil, nil, []int64{}},
		"a second time demands no less":                                  {map[string][]int64{finished: {5, 0}}, []OffsetRange{{0, 9}, {0, 9}}, []int64{5, 0}},
		"a partition that was added since must from the first on":        {map[string][]int64{finished: {5}}, []OffsetRange{{0, 9}, {0, 9}}, []int64{5, 0}},
		"once nothing is kept from before, all must":                     {map[string][]int64{finished: {5}}, []OffsetRange{{5, 9}}, []int64{0}},
		"a topic that was made anew may not be without where it was not": {map[string][]int64{finished: {5}}, []OffsetRange{{0, 2}}, []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := SignaturePolicy{Topics: tt.was}.Require(map[string][]OffsetRange{finished: tt.have})
			if diff := cmp.Diff(SignaturePolicy{Topics: map[string][]int64{finished: tt.want}}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATopicThatIsMadeMustHaveSealsFromItsFirstMessageOn(t *testing.T) {
	t.Parallel()
	was := SignaturePolicy{Topics: map[string][]int64{finished: {5}}}
	got := was.RequireAll(finished, event.TopicLogs)
	if diff := cmp.Diff(SignaturePolicy{Topics: map[string][]int64{finished: {}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !was.RequiresSignature(finished, 0, 5) || was.RequiresSignature(finished, 0, 4) {
		t.Error("what it was made of has changed")
	}
	if open := got.UnsignedTopics(); len(open) != len(SignedTopics())-1 {
		t.Errorf("without: %q", open)
	}
}

func TestASealIsOfOneMessageAlone(t *testing.T) {
	t.Parallel()
	of := func(key string, parts ...string) string {
		var all [][]byte
		for _, p := range parts {
			all = append(all, []byte(p))
		}
		return signatureOf([]byte(key), all...)
	}
	seen := make(map[string]string)
	for name, seal := range map[string]string{
		"the message":                      of("k1", "t", "r1", "v"),
		"under another key":                of("k2", "t", "r1", "v"),
		"of another topic":                 of("k1", "u", "r1", "v"),
		"of another run":                   of("k1", "t", "r2", "v"),
		"of another value":                 of("k1", "t", "r1", "w"),
		"where a byte belongs to the next": of("k1", "t", "r", "1v"),
		"with one part more":               of("k1", "t", "r1", "v", ""),
	} {
		if other, ok := seen[seal]; ok || len(seal) != 64 {
			t.Errorf("%s: %q, as %s", name, seal, other)
		}
		seen[seal] = name
	}
}
