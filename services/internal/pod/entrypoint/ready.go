//go:build linux

package entrypoint

import (
	"fmt"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// readiness calls Settings.OnReady once, when the command is ready.
type readiness struct {
	matcher *lineMatcher // nil if no line tells
	onReady func() error
	warn    func(text string)
}

const (
	readyPoll = 50 * time.Millisecond // how often a file is looked for
	clockStep = 20 * time.Millisecond // how far the kernel's clock for files is behind, at most
)

// newReadiness returns a readiness that looks at no line, if no line tells. It looks for the
// file of the settings, if there is one, until done is closed. A file that was there before the
// command does not count: the local cluster's pods share some of the machine's folders.
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
		go r.awaitFile(s.ReadyFile, time.Now().Add(-clockStep), done)
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

// awaitFile waits until a file exists that has changed since a time.
func (r *readiness) awaitFile(path string, since time.Time, done <-chan struct{}) {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err == nil && !time.Unix(st.Ctim.Unix()).Before(since) {
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
