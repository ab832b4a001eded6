// Package placement decides on which nodes the pods of a run may be: the rules of the
// descriptor, under those of the operator. It is pure.
package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/benchmark-ai/bai/descriptors"
)

// NodeSelector returns the labels that a node must have for a pod on this hardware in a
// zone, where "" is any zone: those of the operator's settings and those of the
// descriptor. The error is for the user: both give a label, with different values.
func NodeSelector(settings map[string]string, h descriptors.Hardware, zone string) (map[string]string, error) {
	h.AvailabilityZone = "" // zone is that
	own := h.NodeLabels()
	if zone != "" {
		own[corev1.LabelTopologyZone] = zone
	}
	for _, label := range slices.Sorted(maps.Keys(own)) {
		if fixed, ok := settings[label]; ok && fixed != own[label] {
			return nil, fmt.Errorf("the descriptor has pods run on nodes with %s=%s, and all pods of this platform run on nodes with %s=%s",
				label, own[label], label, fixed)
		}
	}
	maps.Copy(own, settings)
	if len(own) == 0 {
		return nil, nil //nolint:nilnil // any node will do
	}
	return own, nil
}

// Tolerations returns the taints that a node may have: those of the descriptor, then those
// of the operator's settings that are not among them.
func Tolerations(settings, own []descriptors.Toleration) []corev1.Toleration {
	var all []corev1.Toleration
	for _, t := range slices.Concat(own, settings) {
		one := toleration(t)
		same := func(other corev1.Toleration) bool { return one.MatchToleration(&other) }
		if !slices.ContainsFunc(all, same) {
			all = append(all, one)
		}
	}
	return all
}

func toleration(t descriptors.Toleration) corev1.Toleration {
	one := corev1.Toleration{
		Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value,
		Effect: corev1.TaintEffect(t.Effect),
	}
	if t.Key == "" {
		one.Operator = corev1.TolerationOpExists
	}
	if t.Seconds != nil {
		s := int64(*t.Seconds)
		one.TolerationSeconds = &s
	}
	return one
}

// Check names every label and toleration of the operator's settings that Kubernetes would
// refuse in a pod, below the table called name.
func Check(name string, selector map[string]string, tolerations []descriptors.Toleration) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		wrong := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(selector[key]))
		if len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("%s.node_selector: %q = %q is not a label of nodes: %s", name, key, selector[key], wrong[0]))
		}
	}
	for i, t := range tolerations {
		if problem := tolerationProblem(t); problem != "" {
			errs = append(errs, fmt.Errorf("%s.tolerations[%d].%s", name, i, problem))
		}
	}
	return errors.Join(errs...)
}

// tolerationProblem returns the key of a toleration that is wrong, and why, or "" if none is.
func tolerationProblem(t descriptors.Toleration) string {
	operators := []string{"", string(corev1.TolerationOpEqual), string(corev1.TolerationOpExists)}
	effects := []string{
		"", string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule),
		string(corev1.TaintEffectNoExecute),
	}
	switch exists := t.Operator == string(corev1.TolerationOpExists); {
	case !slices.Contains(operators, t.Operator):
		return fmt.Sprintf("operator: %q: use %s", t.Operator, strings.Join(operators[1:], ", "))
	case !slices.Contains(effects, t.Effect):
		return fmt.Sprintf("effect: %q: use %s", t.Effect, strings.Join(effects[1:], ", "))
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return fmt.Sprintf("key: %q is not the key of a taint", t.Key)
	case t.Key == "" && !exists:
		return `key: operator Equal needs a key (add key, or operator = "Exists")`
	case exists && t.Value != "", len(validation.IsValidLabelValue(t.Value)) > 0:
		return fmt.Sprintf("value: %q: operator Exists compares no value, and Equal that of a label", t.Value)
	case t.Seconds != nil && t.Effect != string(corev1.TaintEffectNoExecute), t.Seconds != nil && *t.Seconds < 0:
		return "toleration_seconds: must not be negative, and only effect NoExecute has a time"
	}
	return ""
}
