package lower

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// variables are a container's own, in order.
type variables struct {
	list  []string
	value map[string]string
}

func (v *variables) set(name, value string) {
	v.value[name] = value
	v.list = append(v.list, name+"="+value)
}

func (v *variables) lookup(name string) (string, bool) {
	value, ok := v.value[name]
	return value, ok
}

// envIndex is the number of a pod of an Indexed Job.
const envIndex = "JOB_COMPLETION_INDEX"

// environment returns the variables of c, or the name of the object that is missing for them.
func environment(in Input, c corev1.Container) (*variables, string) {
	vars := &variables{value: map[string]string{}, list: gpuEnv(in, c)}
	for _, from := range c.EnvFrom {
		data, text := envFromSource(in, from)
		if text != "" {
			return nil, text
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if !strings.ContainsAny(key, "=\x00") {
				vars.set(from.Prefix+key, string(data[key]))
			}
		}
	}
	for _, e := range c.Env {
		value, ok, text := resolveVariable(in, e, vars)
		if text != "" {
			return nil, text
		}
		if ok {
			vars.set(e.Name, value)
		}
	}
	if _, own := vars.value[envIndex]; validate.IsIndexed(in.Job) && !own {
		vars.set(envIndex, strconv.Itoa(in.Index))
	}
	return vars, ""
}

func envFromSource(in Input, from corev1.EnvFromSource) (map[string][]byte, string) {
	switch {
	case from.ConfigMapRef != nil:
		c, ok := in.ConfigMaps[from.ConfigMapRef.Name]
		if !ok {
			return nil, missingUnlessOptional(from.ConfigMapRef.Optional, "configmap %q not found", from.ConfigMapRef.Name)
		}
		return configData(c), ""
	case from.SecretRef != nil:
		s, ok := in.Secrets[from.SecretRef.Name]
		if !ok {
			return nil, missingUnlessOptional(from.SecretRef.Optional, "secret %q not found", from.SecretRef.Name)
		}
		return secretData(s), ""
	}
	return nil, ""
}

// resolveVariable returns the value of a variable, and whether it has one.
func resolveVariable(in Input, e corev1.EnvVar, vars *variables) (value string, ok bool, missing string) {
	from := e.ValueFrom
	switch {
	case from == nil:
		return cluster.Expand(e.Value, vars.lookup), true, ""
	case from.FieldRef != nil:
		return fieldRef(in, from.FieldRef.FieldPath), true, ""
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		c, there := in.ConfigMaps[r.Name]
		if !there {
			return "", false, missingUnlessOptional(r.Optional, "configmap %q not found", r.Name)
		}
		return lookupKey(configData(c), r.Key, r.Optional, "ConfigMap", in.Job.Namespace+"/"+r.Name)
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		s, there := in.Secrets[r.Name]
		if !there {
			return "", false, missingUnlessOptional(r.Optional, "secret %q not found", r.Name)
		}
		return lookupKey(secretData(s), r.Key, r.Optional, "Secret", in.Job.Namespace+"/"+r.Name)
	}
	return "", false, ""
}

func lookupKey(data map[string][]byte, key string, optional *bool, kind, name string) (string, bool, string) {
	b, ok := data[key]
	if !ok {
		return "", false, missingUnlessOptional(optional, "couldn't find key %s in %s %s", key, kind, name)
	}
	return string(b), true, ""
}

// fieldRef returns a field of the downward API.
func fieldRef(in Input, path string) string {
	fixed := map[string]string{
		"metadata.name": in.PodName, "metadata.uid": in.PodUID, "metadata.namespace": in.Job.Namespace,
		"spec.nodeName": in.Node, "status.podIP": in.IP, "status.hostIP": in.HostIP,
	}
	if v, ok := fixed[path]; ok {
		return v
	}
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return in.Labels[strings.TrimSuffix(key, "']")]
	}
	key := strings.TrimPrefix(path, "metadata.annotations['")
	return in.Annotations[strings.TrimSuffix(key, "']")]
}

// overlay returns base with vars over it: one value for each name, the last.
func overlay(base, vars []string) []string {
	at, env := map[string]int{}, make([]string, 0, len(base)+len(vars))
	for _, v := range slices.Concat(base, vars) {
		name, _, _ := strings.Cut(v, "=")
		if i, ok := at[name]; ok {
			env[i] = v
			continue
		}
		at[name] = len(env)
		env = append(env, v)
	}
	return env
}

// setVariable replaces or adds a variable.
func setVariable(env []string, name, value string) []string {
	return overlay(env, []string{fmt.Sprintf("%s=%s", name, value)})
}
