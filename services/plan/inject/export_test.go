package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors/manifest"
)

// Names of this package for tests of the rules.
func AddParts(own *corev1.PodTemplateSpec, measured *corev1.Container, platform corev1.PodTemplateSpec) {
	addParts(own, measured, platform)
}

func MeasuredOf(spec *corev1.PodSpec, name string) *corev1.Container { return measuredOf(spec, name) }

type Names = objectNames

func NamesOf(attempt string, copyNumber int, all []manifest.Document, main int) Names {
	return newObjectNames(attempt, copyNumber, all, main)
}
