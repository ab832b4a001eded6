package hub_test

import (
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store/hub"
)

// closed reports whether c is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAChangeWakesWhoWaitsForTheRunOrForAny(t *testing.T) {
	var h hub.Hub
	run, again, other, all := h.Wait("a"), h.Wait("a"), h.Wait("b"), h.Wait("")
	h.Changed("a")
	if !closed(run) || !closed(again) || !closed(all) {
		t.Error("somebody who waits for it is not woken")
	}
	if closed(other) {
		t.Error("who waits for another run is woken")
	}
	if closed(h.Wait("a")) {
		t.Error("who waits after the change is woken by it")
	}
}

func TestWhoWaitsIsWokenRatherThanKeptWithoutEnd(t *testing.T) {
	var h hub.Hub
	first := h.Wait("first")
	for i := range 2000 {
		h.Wait(fmt.Sprint(i))
	}
	if !closed(first) {
		t.Error("2,000 others wait, and all are kept")
	}
}
