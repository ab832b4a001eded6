package notifier_test

import (
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store/notifier"
)

// isClosed reports whether c is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAChangeWakesWhoWaitsForTheRunOrForAny(t *testing.T) {
	var h notifier.Notifier
	run, again, other, all := h.Subscribe("a"), h.Subscribe("a"), h.Subscribe("b"), h.Subscribe("")
	h.Notify("a")
	if !isClosed(run) || !isClosed(again) || !isClosed(all) {
		t.Error("somebody who waits for it is not woken")
	}
	if isClosed(other) {
		t.Error("who waits for another run is woken")
	}
	if isClosed(h.Subscribe("a")) {
		t.Error("who waits after the change is woken by it")
	}
}

func TestWhoWaitsIsWokenRatherThanKeptWithoutEnd(t *testing.T) {
	var h notifier.Notifier
	first := h.Subscribe("first")
	for i := range 2000 {
		h.Subscribe(fmt.Sprint(i))
	}
	if !isClosed(first) {
		t.Error("2,000 others wait, and all are kept")
	}
}
