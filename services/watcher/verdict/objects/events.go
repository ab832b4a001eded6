package objects

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EventTime returns the last time of an event.
func EventTime(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// LastEvent returns the latest event of a reason.
func LastEvent(events []corev1.Event, reason string) (corev1.Event, bool) {
	for _, e := range slices.Backward(events) {
		if e.Reason == reason {
			return e, true
		}
	}
	return corev1.Event{}, false
}

// EventsOf returns the events about the object with a name.
func EventsOf(events []corev1.Event, name string) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return e.InvolvedObject.Name != name })
}

// JoinReasonMessage joins a reason and a message of the cluster, either of which may be empty.
func JoinReasonMessage(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
