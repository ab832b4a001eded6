package consistency

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheDataFolderIsDoubtedOnlyWhereStoreAndBrokerMayNotBeOfOneTime(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	files := map[string]FileStamp{"store.db": {10, at}, "broker/data/x.dat": {20, at}}
	running := func() *brokerMark { return &brokerMark{Broker: "b", Store: "s", Boot: "1", Heartbeat: 7} }
	ended := func() *brokerMark {
		return &brokerMark{Broker: "b", Store: "s", Boot: "1", Heartbeat: 7, Clean: true, Files: files}
	}
	noted := func(pulse int64) *storeMark { return &storeMark{Broker: "b", Heartbeat: pulse} }
	const (
		other   = "the store is not the one that the broker knows: it was emptied, removed or replaced"
		behind  = "the store is older than the broker's files"
		ahead   = "the broker's files are older than the store, or of another platform"
		stopped = "the machine has stopped while the platform ran"
	)
	for name, tt := range map[string]struct {
		found StartState
		want  []string
	}{
		"an empty folder":                         {found: StartState{Store: "s", Boot: "1"}},
		"told to end":                             {found: StartState{Mark: ended(), Broker: true, Store: "s", StoreMark: noted(7), Boot: "1", Files: files}},
		"told to end before the machine was":      {found: StartState{Mark: ended(), Broker: true, Store: "s", StoreMark: noted(7), Boot: "2", Files: files}},
		"killed":                                  {found: StartState{Mark: running(), Broker: true, Store: "s", StoreMark: noted(7), Boot: "1", Files: files}},
		"killed between the two notes":            {found: StartState{Mark: running(), Broker: true, Store: "s", StoreMark: noted(8), Boot: "1"}},
		"the power was cut":                       {StartState{Mark: running(), Broker: true, Store: "s", StoreMark: noted(7), Boot: "2"}, []string{stopped}},
		"a version without marks wrote it":        {StartState{Broker: true, Store: "s", Boot: "1"}, []string{"nothing says how the platform last ended"}},
		"the mark is gone":                        {StartState{Broker: true, Store: "s", StoreMark: noted(7), Boot: "1"}, []string{"nothing says how the platform last ended"}},
		"the store was begun anew":                {StartState{Mark: running(), Broker: true, Store: "t", Boot: "1"}, []string{other}},
		"the store is some seconds older":         {StartState{Mark: running(), Broker: true, Store: "s", StoreMark: noted(5), Boot: "1"}, []string{behind}},
		"the store is from before the first note": {StartState{Mark: running(), Broker: true, Store: "s", Boot: "1"}, []string{behind}},
		"the broker is some seconds older":        {StartState{Mark: running(), Broker: true, Store: "s", StoreMark: noted(9), Boot: "1"}, []string{ahead}},
		"the broker is another's":                 {StartState{Mark: running(), Broker: true, Store: "s", StoreMark: &storeMark{Broker: "c", Heartbeat: 7}, Boot: "1"}, []string{ahead}},
		"killed before the last check was over": {
			StartState{Mark: &brokerMark{Broker: "b", Store: "s", Boot: "1", Heartbeat: 7, Recovering: true}, Broker: true, Store: "s", StoreMark: noted(7), Boot: "1"},
			[]string{"the check of the last start did not come to its end"},
		},
		"a file has changed since the end": {
			StartState{Mark: ended(), Broker: true, Store: "s", StoreMark: noted(7), Boot: "1", Files: map[string]FileStamp{"store.db": {10, at}, "broker/data/x.dat": {13, at}}},
			[]string{"files have changed since the platform ended: broker/data/x.dat"},
		},
		"a file is gone, another is new, one was written": {
			StartState{Mark: ended(), Broker: true, Store: "s", StoreMark: noted(7), Boot: "1", Files: map[string]FileStamp{"store.db": {10, at.Add(1)}, "store.db-wal": {1, at}}},
			[]string{"files have changed since the platform ended: broker/data/x.dat, store.db, store.db-wal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, IntegrityProblems(tt.found)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAKeyOfSealsThatIsDamagedIsToldFromOneThatWasChanged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		known, file string
		want        bool
	}{
		"as it was":                            {"abcdef\n", "abcdef\n", false},
		"a store that knows none":              {"", "abcdef\n", false},
		"a key was added":                      {"abcdef\n", "abcdef\nghijkl\n", false},
		"the new key seals":                    {"abcdef\nghijkl\n", "ghijkl\nabcdef\n", false},
		"the old key is gone":                  {"ghijkl\nabcdef\n", "ghijkl\n", false},
		"its last bytes are missing":           {"abcdef\n", "abc", true},
		"it is empty":                          {"abcdef\n", "", true},
		"it is zeros":                          {"abcdef\n", "\x00\x00\x00\x00\x00\x00\x00", true},
		"it is of another platform altogether": {"abcdef\n", "ghijkl\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := damagedKeys(tt.known, tt.file); got != tt.want {
				t.Errorf("damaged: %v, want %v", got, tt.want)
			}
		})
	}
}
