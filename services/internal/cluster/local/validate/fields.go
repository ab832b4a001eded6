package validate

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// supportedFields returns the path of every supported field of an object, in the notation of Kubernetes, with [] for any element, and the
// effect of the field in the local cluster. Any other field that is not part of a supported one must be absent or have its zero value.
func supportedFields() map[string]string {
	const (
		kept    = "kept and shown"
		none    = "accepted; has no meaning on one machine that runs its own programs"
		carried = "carried out"
		given   = "accepted; given anew"
	)
	fields := map[string]string{
		"kind": kept, "apiVersion": kept,
		"metadata.name": kept, "metadata.namespace": kept, "metadata.labels": kept, "metadata.annotations": kept,
		"metadata.uid": given, "metadata.creationTimestamp": given, "metadata.resourceVersion": given, "metadata.generation": given,
		"spec.selector": "of a Service: whose address its name stands for", "spec.ports": "kept and shown, of a Service",
		"spec.publishNotReadyAddresses": "they always are",
		"spec.clusterIP":                "None or none: a Service's name stands for its pods either way",

		"data": carried, "binaryData": carried, "stringData": carried, "type": kept, "immutable": kept,

		"spec.completionMode":          "Indexed: each pod has its number",
		"spec.parallelism":             "all completions at the same time",
		"spec.completions":             "1, or more of an Indexed Job",
		"spec.backoffLimit":            "0",
		"spec.activeDeadlineSeconds":   carried,
		"spec.ttlSecondsAfterFinished": carried,

		"spec.template.metadata.labels":      kept,
		"spec.template.metadata.annotations": kept,
	}
	pod := map[string]string{
		"restartPolicy": "Never", "terminationGracePeriodSeconds": carried,
		"volumes[].name": carried, "volumes[].emptyDir": "medium and, in memory, sizeLimit",
		"volumes[].configMap": carried, "volumes[].secret": carried,
		"hostname": "of a pod with a network of its own", "subdomain": "of a pod with a network of its own", "dnsConfig.searches": none,
		"shareProcessNamespace": "they always do", "hostNetwork": "they do, unless their run has a Service",
		"imagePullSecrets": none, "serviceAccountName": none, "serviceAccount": none, "automountServiceAccountToken": none,
		"nodeSelector": none, "tolerations": none, "affinity": none, "topologySpreadConstraints": none,
		"priorityClassName": none, "priority": none, "preemptionPolicy": none, "schedulerName": none,
		"enableServiceLinks": none, "dnsPolicy": none, "runtimeClassName": none, "overhead": none,
		"securityContext.seccompProfile": none, "securityContext.runAsNonRoot": none,
	}
	for path, what := range pod {
		fields["spec.template.spec."+path] = what
	}
	container := map[string]string{
		"name": carried, "command": "run with this machine's own programs", "args": carried, "workingDir": carried,
		"env[].name": carried, "env[].value": "with $(NAME) replaced",
		"env[].valueFrom.fieldRef":        "metadata.name, .namespace, .uid, .labels['x'], .annotations['x'], spec.nodeName, status.podIP, status.hostIP",
		"env[].valueFrom.configMapKeyRef": carried, "env[].valueFrom.secretKeyRef": carried,
		"envFrom[].prefix": carried, "envFrom[].configMapRef": carried, "envFrom[].secretRef": carried,
		"volumeMounts[].name": carried, "volumeMounts[].mountPath": carried, "volumeMounts[].subPath": carried,
		"volumeMounts[].readOnly": carried,
		"resources.limits":        GPU + " only", "resources.requests": none,
		"terminationMessagePath": carried, "terminationMessagePolicy": carried,
		"image": none, "imagePullPolicy": none, "readinessProbe": none, "ports": "containerPort: no other attempt gets the same",
		"securityContext.allowPrivilegeEscalation": none, "securityContext.capabilities": none, "securityContext.privileged": none,
		"securityContext.seccompProfile": none, "securityContext.runAsNonRoot": none,
	}
	for path, what := range container {
		fields["spec.template.spec.containers[]."+path] = what
		fields["spec.template.spec.initContainers[]."+path] = what
	}
	fields["spec.template.spec.initContainers[].restartPolicy"] = "Always makes a sidecar"
	return fields
}

// unsupportedField returns the path of a field of o that is not in supportedFields, empty if there is none.
func unsupportedField(o cluster.Object) string {
	path, _ := walk(reflect.ValueOf(o).Elem(), supportedFields(), "", "")
	return path
}

// walk returns the first unsupported field below v. The path is as written, the pattern has [] for any element.
func walk(v reflect.Value, supported map[string]string, path, pattern string) (string, bool) {
	if _, ok := supported[pattern]; ok || v.IsZero() {
		return "", false
	}
	switch v.Kind() { //nolint:exhaustive // all others are leaves
	case reflect.Pointer:
		return walk(v.Elem(), supported, path, pattern)
	case reflect.Slice:
		if v.Len() > 0 && !hasFieldBelow(supported, pattern+"[]") {
			return path, true
		}
		for i := range v.Len() {
			if p, bad := walk(v.Index(i), supported, fmt.Sprintf("%s[%d]", path, i), pattern+"[]"); bad {
				return p, true
			}
		}
		return "", false
	case reflect.Struct:
		return walkStruct(v, supported, path, pattern)
	}
	return path, true
}

func walkStruct(v reflect.Value, supported map[string]string, path, pattern string) (string, bool) {
	t, known := v.Type(), false
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		known = true
		sub, subPattern := path, pattern
		if name != "" {
			sub, subPattern = join(path, name), join(pattern, name)
		}
		if p, bad := walk(v.Field(i), supported, sub, subPattern); bad {
			return p, true
		}
	}
	return path, !known // a value of its own kind, such as a time
}

// hasFieldBelow reports whether an accepted field lies below a pattern.
func hasFieldBelow(supported map[string]string, pattern string) bool {
	for p := range supported {
		if strings.HasPrefix(p, pattern) {
			return true
		}
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
