package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// checkQuotas reports whether the namespace's quotas leave room for a run.
func checkQuotas(n Requirements, s cluster.Survey) []Check {
	if s.QuotasUnknownReason != "" {
		return []Check{{
			Topic: TopicQuota, Grade: Warning, Message: "the quotas of the namespace cannot be listed: " + s.QuotasUnknownReason,
			Remedy: "grant the platform's account the verb list on resourcequotas",
		}}
	}
	var all []Check
	uses := quotaUsage(n.Objects)
	for _, q := range s.Quotas {
		if c, ok := quota(q, n, uses); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 && !s.LocalMachine {
		all = append(all, Check{Topic: TopicQuota, Message: "the namespace has none that a run counts against"})
	}
	return all
}

// quota checks a run against one quota. It returns false if the run does not count
// against the quota.
func quota(q corev1.ResourceQuota, n Requirements, uses corev1.ResourceList) (Check, bool) {
	c := Check{Topic: TopicQuota, Subject: q.Name}
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		c.Grade, c.Message = Warning, "it holds for some pods only, which is not looked at"
		c.Remedy = fmt.Sprintf("look: kubectl -n %s describe quota %s", n.Scope, q.Name)
		return c, true
	}
	var never, now, fits []string
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		want, counted := uses[name]
		if !counted || want.IsZero() {
			continue
		}
		hard, left := q.Spec.Hard[name], q.Spec.Hard[name].DeepCopy()
		left.Sub(q.Status.Used[name])
		words := fmt.Sprintf("%s: %s needed, %s of %s left", name, want.String(), left.String(), hard.String())
		switch {
		case want.Cmp(hard) > 0:
			never = append(never, words)
		case want.Cmp(left) > 0:
			now = append(now, words)
		default:
			fits = append(fits, words)
		}
	}
	bare := unspecifiedResource(q, n.Objects)
	switch {
	case len(never) > 0:
		c.Grade, c.Class, c.Message = Fault, event.ClassUser, "the quota never allows it: "+strings.Join(never, "; ")
		c.Remedy = "ask for less, or have the quota raised"
	case bare != "":
		c.Grade, c.Message = Warning,
			"the quota counts "+bare+
				", which not every container of the run names: its pods are refused unless a LimitRange names it for them"
		c.Remedy = "have a LimitRange with default requests and limits in the namespace " + n.Scope
	case len(now) > 0:
		c.Grade, c.Message = Warning, "others use the quota up: "+strings.Join(now, "; ")
		c.Remedy = "wait until they have ended, or have the quota raised"
	case len(fits) == 0:
		return c, false
	default:
		c.Message = strings.Join(fits, "; ")
	}
	return c, true
}

// quotaUsage returns the usage of a run, by the resource names of quotas.
func quotaUsage(objects []cluster.Object) corev1.ResourceList {
	uses := usage{}
	for _, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind()
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		if kind.Group == "" {
			uses.add(corev1.ResourceName(plural.Resource), oneUnit(), 1)
			uses.add(corev1.ResourceName("count/"+plural.Resource), oneUnit(), 1)
			continue
		}
		uses.add(corev1.ResourceName("count/"+plural.Resource+"."+kind.Group), oneUnit(), 1)
	}
	for _, r := range rolesOf(objects) {
		uses.pods(r)
	}
	return corev1.ResourceList(uses)
}

// usage is an amount of each resource.
type usage corev1.ResourceList

func oneUnit() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }

func (u usage) add(name corev1.ResourceName, q resource.Quantity, times int64) {
	total := u[name]
	for range times {
		total.Add(q)
	}
	u[name] = total
}

// pods adds the pods of a role.
func (u usage) pods(r role) {
	u.add(corev1.ResourcePods, oneUnit(), r.replicas)
	u.add("count/pods", oneUnit(), r.replicas)
	for name, q := range cluster.PodRequests(r.spec) {
		u.add("requests."+name, q, r.replicas)
		if !strings.Contains(string(name), "/") {
			u.add(name, q, r.replicas)
		}
	}
	for _, c := range r.spec.Containers {
		for name, q := range c.Resources.Limits {
			u.add("limits."+name, q, r.replicas)
		}
	}
}

// unspecifiedResource returns a resource that a quota counts and that some container
// does not specify, or "".
func unspecifiedResource(q corev1.ResourceQuota, objects []cluster.Object) string {
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		of, limit := strings.CutPrefix(string(name), "limits.")
		of = strings.TrimPrefix(of, "requests.")
		if of != string(corev1.ResourceCPU) && of != string(corev1.ResourceMemory) {
			continue
		}
		if slices.ContainsFunc(rolesOf(objects), func(r role) bool { return omitsResource(r, corev1.ResourceName(of), limit) }) {
			return string(name)
		}
	}
	return ""
}

// omitsResource reports whether some container of a role does not specify a resource.
func omitsResource(r role, name corev1.ResourceName, limit bool) bool {
	return slices.ContainsFunc(slices.Concat(r.spec.InitContainers, r.spec.Containers), func(c corev1.Container) bool {
		has := cluster.ContainerRequests(c)
		if limit {
			has = c.Resources.Limits
		}
		_, ok := has[name]
		return !ok
	})
}
