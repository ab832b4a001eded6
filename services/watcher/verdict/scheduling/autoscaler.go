package scheduling

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// maxProvisioning is how long an autoscaler's announcement of a node is valid: cluster-autoscaler itself gives a node up after 15 min.
const maxProvisioning = 20 * time.Minute

// Autoscaler is the state of an autoscaler for a pod, according to its events.
type Autoscaler struct {
	ScaleUpMessage string        // its message while it adds a node
	Since, Until   time.Time     // if it adds a node: since when, and until when that is valid
	RefusalMessage string        // its last message that it adds none
	ScalingTime    time.Duration // how long in all it was adding nodes
}

// ReadAutoscaler reads an autoscaler's events about a pod.
func ReadAutoscaler(events []corev1.Event, now time.Time) Autoscaler {
	var s Autoscaler
	stop := func(at time.Time) {
		if s.ScaleUpMessage != "" {
			s.ScalingTime += max(0, min(at.Sub(s.Since), maxProvisioning))
			s.ScaleUpMessage = ""
		}
	}
	for _, e := range events {
		switch e.Reason {
		case "TriggeredScaleUp", "Nominated":
			stop(objects.EventTime(e))
			s.ScaleUpMessage, s.RefusalMessage = e.Message, ""
			s.Since, s.Until = objects.EventTime(e), objects.EventTime(e).Add(maxProvisioning)
		case "NotTriggerScaleUp", "FailedScaleUp":
			stop(objects.EventTime(e))
			s.RefusalMessage = e.Message
		}
	}
	if adding := s.ScaleUpMessage; adding != "" {
		stop(now)
		if now.Before(s.Until) {
			s.ScaleUpMessage = adding
		}
	}
	return s
}
