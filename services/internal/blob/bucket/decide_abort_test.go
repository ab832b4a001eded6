package bucket

import (
	"testing"
	"time"
)

func TestDecideAbort(t *testing.T) {
	for name, c := range map[string]struct {
		try   abortTry
		again bool
		wait  time.Duration
	}{
		"an upload without parts whose requests were all answered is gone": {
			abortTry{Number: 1}, false, 0,
		},
		"an upload that has parts is aborted again": {
			abortTry{Number: 1, PartsLeft: true}, true, 50 * time.Millisecond,
		},
		"the wait doubles": {
			abortTry{Number: 3, PartsLeft: true}, true, 200 * time.Millisecond,
		},
		"the wait has a maximum": {
			abortTry{Number: 70, PartsLeft: true}, true, time.Second,
		},
		"a part without an answer may still arrive": {
			abortTry{Number: 2, Unanswered: true, Quiet: lateParts - 1}, true, 100 * time.Millisecond,
		},
		"a part without an answer does not arrive any more after some time": {
			abortTry{Number: 9, Unanswered: true, Quiet: lateParts}, false, 0,
		},
		"parts that are there do not go by waiting": {
			abortTry{Number: 9, PartsLeft: true, Unanswered: true, Quiet: time.Hour}, true, time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if again, wait := decideAbort(c.try); again != c.again || wait != c.wait {
				t.Errorf("again %v, wait %s; want %v, %s", again, wait, c.again, c.wait)
			}
		})
	}
}
