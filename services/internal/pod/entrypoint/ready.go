//go:build linux

package entrypoint

import (
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
)

// readiness calls Settings.OnReady once, when the command is ready.
type readiness struct {
	matcher *lineMatcher // nil if no line tells
	onReady func() error
	warn    func(text string)
}

// readyPoll is how often a file is looked for.
const readyPoll = 50 * time.Millisecond

// newReadiness returns a readiness that looks at no line, if no line tells. It looks for the
// file of the settings, if there is one, until done is closed. A file that is there by now and
// does not change does not count: the local cluster's pods share some of the machine's folders.
func newReadiness(s Settings, warn func(text string), done <-chan struct{}) (*readiness, error) {
	r := &readiness{onReady: s.OnReady, warn: warn}
	if s.ReadyLog != "" {
		pattern, err := regexp.Compile(s.ReadyLog)
		if err != nil {
			return nil, fmt.Errorf("the pattern of a line that tells that the command is ready: %w", err)
		}
		r.matcher = &lineMatcher{pattern: pattern}
	}
	if s.ReadyFile != "" {
		go r.awaitFile(s.ReadyFile, stateOf(s.ReadyFile), done)
	}
	return r, nil
}

// read looks at output of the command.
func (r *readiness) read(isErr bool, data []byte) {
	if r.matcher != nil && r.matcher.add(isErr, data) {
		r.matcher = nil
		r.isReady()
	}
}

func (r *readiness) isReady() {
	if r.onReady == nil {
		return
	}
	if err := r.onReady(); err != nil {
		r.warn(fmt.Sprintf("bai: the command is ready, and others cannot be told: %v\n", err))
	}
}

// stateOf returns the state of a file, the zero value where there is none.
func stateOf(path string) artifacts.FileState {
	info, err := os.Stat(path)
	if err != nil {
		return artifacts.FileState{}
	}
	return artifacts.StateOf(info)
}

// awaitFile waits until a file exists that was not there before as it is.
func (r *readiness) awaitFile(path string, before artifacts.FileState, done <-chan struct{}) {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if now := stateOf(path); now != (artifacts.FileState{}) && now != before {
			r.isReady()
			return
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}
