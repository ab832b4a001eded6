package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// decide checks everything that a run needs, in the order in which the run would need
// it.
func decide(n Requirements, s cluster.Survey) []Check {
	if n.PlanError != "" {
		return append([]Check{{Topic: TopicPlan, Grade: Fault, Message: n.PlanError, Class: event.ClassUser}}, checkData(n.Data)...)
	}
	if n.ClusterError != "" {
		unreachable := Check{
			Topic: TopicCluster, Grade: Fault, Class: event.ClassPlatform, Message: "the cluster cannot be asked: " + n.ClusterError,
			Remedy: "look whether it runs, and whether the platform's settings name it right",
		}
		return append([]Check{unreachable}, checkData(n.Data)...)
	}
	checks := []Check{{Topic: TopicCluster, Message: s.Name}}
	checks = append(checks, checkLimits(n.Objects)...)
	checks = append(checks, checkRefusals(s)...)
	checks = append(checks, checkPermissions(n, s)...)
	checks = append(checks, checkKinds(s)...)
	checks = append(checks, checkPriorityClasses(s)...)
	checks = append(checks, checkNetworks(s)...)
	if len(s.Refusals) == 0 { // refusals already tell why no node takes the pods
		checks = append(checks, checkNodes(rolesOf(n.Objects), s)...)
	}
	checks = append(checks, checkQuotas(n, s)...)
	checks = append(checks, checkStorageClasses(s)...)
	checks = append(checks, checkStorage(n, s)...)
	checks = append(checks, checkSecrets(n, s)...)
	checks = append(checks, checkImages(n, s)...)
	checks = append(checks, checkPrograms(s)...)
	return append(checks, checkData(n.Data)...)
}

// decideUnasked checks what is known of a run on an engine whose cluster cannot be asked from
// here.
func decideUnasked(n Requirements, engine string) []Check {
	checks := []Check{{
		Topic: TopicCluster, Grade: Warning,
		Message: fmt.Sprintf("the gateway cannot ask engine %s: whether its cluster has what the run needs is not known", engine),
	}}
	return append(append(checks, checkLimits(n.Objects)...), checkData(n.Data)...)
}

// checkLimits reports a run without a deadline. That is not a fault, since a benchmark
// may be meant to run until it is canceled.
func checkLimits(objects []cluster.Object) []Check {
	jobs := 0
	for _, o := range objects {
		job, ok := o.(*batchv1.Job)
		if !ok {
			continue
		}
		jobs++
		if job.Spec.ActiveDeadlineSeconds != nil {
			return nil
		}
	}
	if jobs == 0 {
		return nil
	}
	return []Check{{
		Topic: TopicLimits, Message: "limits.deadline is not set: a run that does not end by itself goes on until it is canceled",
		Remedy: `add deadline = "1h" to [limits] to end it`,
	}}
}

// checkRefusals reports the objects that the cluster would refuse.
func checkRefusals(s cluster.Survey) []Check {
	var all []Check
	for _, r := range s.Refusals {
		all = append(all, Check{
			Topic: TopicPlan, Subject: r.Object, Grade: Fault, Message: r.Message,
			Class: cmp.Or(r.Class, event.ClassUser),
		})
	}
	return all
}

// checkPermissions reports missing permissions, by account.
func checkPermissions(n Requirements, s cluster.Survey) []Check {
	if s.LocalMachine {
		return nil
	}
	missing, unknown := map[string][]string{}, ""
	for r, a := range s.Permissions {
		switch {
		case a.UnknownReason != "":
			unknown = max(unknown, a.UnknownReason)
		case !a.Yes:
			missing[r.Account] = append(missing[r.Account], rightText(r))
		}
	}
	var all []Check
	for _, account := range slices.Sorted(maps.Keys(missing)) {
		subject := account
		if subject == "" {
			subject = "the platform's account"
		}
		slices.Sort(missing[account])
		all = append(all, Check{
			Topic: TopicPermissions, Subject: account, Grade: Fault, Class: event.ClassPlatform,
			Message: fmt.Sprintf("%s may not %s", subject, strings.Join(missing[account], ", ")),
			Remedy:  fmt.Sprintf("grant these verbs in the namespace %s by a role, as deploy/kubernetes/base/rbac does", n.Scope),
		})
	}
	if unknown != "" {
		all = append(all, Check{
			Topic: TopicPermissions, Grade: Warning, Message: "not every permission could be looked up: " + unknown,
			Remedy: "kubectl auth can-i --list -n " + n.Scope + " --as ACCOUNT tells",
		})
	}
	if len(all) == 0 {
		all = append(all, Check{
			Topic:   TopicPermissions,
			Message: fmt.Sprintf("all %d permissions in the namespace %s", len(s.Permissions), n.Scope),
		})
	}
	return all
}

func rightText(r cluster.Permission) string {
	words := r.Verb + " " + r.Resource
	if r.Group != "" {
		words += "." + r.Group
	}
	return words
}

// checkKinds reports whether the cluster has the kinds that not every cluster has.
func checkKinds(s cluster.Survey) []Check {
	var all []Check
	for _, k := range slices.SortedFunc(maps.Keys(s.Kinds),
		func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		a, c := s.Kinds[k], Check{Topic: TopicKinds, Subject: k.Kind, Message: "the cluster has " + k.Kind + " of " + k.Group}
		switch {
		case a.UnknownReason != "":
			c.Grade, c.Message = Warning, k.Kind+" of "+k.Group+" cannot be looked up: "+a.UnknownReason
		case !a.Yes:
			c.Grade, c.Class = Fault, event.ClassPlatform
			c.Message = "the cluster has no " + k.Kind + " of " + k.Group
			c.Remedy = "install what brings it, or take the platform's setting away that asks for it (executor.pods.scheduler, executor.pods.queue, executor.pods.mpi_operator), or hardware.queue out of the descriptor"
			if k == networkKind() {
				c.Remedy = "install Multus, or take network.attachment out of the descriptor"
			} else if known, ok := manifest.Find(k.GroupVersion().String(), k.Kind); ok && known.Operator != "" {
				c.Remedy = known.Operator + " brings it: install it, or write another kind into the manifest"
			}
		}
		if !s.LocalMachine {
			all = append(all, c)
		}
	}
	return all
}

// checkNetworks reports whether the networks of Multus exist. A cluster without Multus has a
// check of its kind already.
func checkNetworks(s cluster.Survey) []Check {
	if a, ok := s.Kinds[networkKind()]; ok && !a.Yes {
		return nil
	}
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.Networks)) {
		a, c := s.Networks[name], Check{Topic: TopicKinds, Subject: name, Message: "the cluster has the network"}
		switch {
		case a.UnknownReason != "":
			c.Grade, c.Message = Warning, "the network cannot be looked up: "+a.UnknownReason
			c.Remedy = "grant the platform's account the verb get on network-attachment-definitions, as deploy/kubernetes/networks does"
		case !a.Yes:
			c.Grade, c.Class, c.Message = Fault, event.ClassUser, "the cluster has no such NetworkAttachmentDefinition"
			c.Remedy = "name another one (network.attachment); a name without a namespace is one of " + cluster.NetworksNamespace
		}
		all = append(all, c)
	}
	return all
}

// checkPriorityClasses reports whether the priority classes exist.
func checkPriorityClasses(s cluster.Survey) []Check {
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.PriorityClasses)) {
		a, c := s.PriorityClasses[name], Check{Topic: TopicKinds, Subject: name, Message: "the cluster has the priority class"}
		switch {
		case a.UnknownReason != "":
			c.Grade, c.Message = Warning, "the priority class cannot be looked up: "+a.UnknownReason
		case !a.Yes:
			c.Grade, c.Class, c.Message = Fault, event.ClassPlatform, "the cluster has no such priority class, so that every pod is refused"
			c.Remedy = "make it, or name another one: in the descriptor (hardware.priority), or in the platform's setting executor.pods.priority_class"
		case s.LocalMachine:
			continue
		}
		all = append(all, c)
	}
	return all
}

// checkSecrets reports whether the secrets that a run names exist.
func checkSecrets(n Requirements, s cluster.Survey) []Check {
	var all []Check
	keys := slices.SortedFunc(maps.Keys(s.Secrets), func(a, b cluster.SecretKey) int {
		return strings.Compare(a.Name+"/"+a.Key, b.Name+"/"+b.Key)
	})
	for _, k := range keys {
		if c, ok := checkSecret(k, s.Secrets[k], n.Scope, s.LocalMachine); ok {
			all = append(all, c)
		}
	}
	return all
}

func checkSecret(k cluster.SecretKey, a cluster.Answer, scope string, machine bool) (Check, bool) {
	c := Check{Topic: TopicSecrets, Subject: strings.TrimSuffix(k.Name+"/"+k.Key, "/"), Message: "it is there"}
	pulls := k.Key == ""
	creation := fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=VALUE", scope, k.Name, k.Key)
	if pulls {
		creation = fmt.Sprintf("kubectl -n %s create secret docker-registry %s --docker-server=REGISTRY --docker-username=USER --docker-password=PASSWORD", scope, k.Name)
	}
	switch {
	case machine && pulls:
		return c, false
	case a.UnknownReason != "":
		c.Grade, c.Message = Warning, "it cannot be looked up: "+a.UnknownReason
		c.Remedy = fmt.Sprintf("look: kubectl -n %s get secret %s", scope, k.Name)
	case !a.Yes && machine:
		c.Grade, c.Class, c.Message, c.Remedy = Fault, event.ClassUser, "it cannot be had", a.Detail
	case !a.Yes:
		c.Grade, c.Class, c.Message, c.Remedy = Fault, event.ClassUser, fmt.Sprintf("the namespace %s has no secret %s", scope, k.Name),
			creation
	case !pulls && !machine:
		c.Message = fmt.Sprintf("the secret is there; whether it has the key %s is not looked at", k.Key)
	}
	return c, true
}

// checkImages reports the images whose own entrypoint is run: with their entrypoint if
// it could be read from the registry, and with a warning otherwise.
func checkImages(n Requirements, s cluster.Survey) []Check {
	var all []Check
	for _, i := range n.Images {
		if i.UnreadReason == "" {
			all = append(all, Check{
				Topic: TopicImages, Subject: i.Name,
				Message: fmt.Sprintf("its registry gives its entrypoint (%s, %s): it is run as a command of a descriptor is", i.Platform,
					i.Digest),
			})
		}
	}
	for _, r := range rolesOf(n.Objects) {
		if runsEntrypoint(r) && !s.LocalMachine { // on the local machine such an image is a refusal
			all = append(all, entrypointWarning(n, r))
		}
	}
	return all
}

// entrypointWarning warns that the output of a role is read from its container's log,
// and gives the reason.
func entrypointWarning(n Requirements, r role) Check {
	c := Check{
		Topic: TopicImages, Subject: r.name, Grade: Warning,
		Message: "the image's own entrypoint is run: its output is read from the container's log, without telling standard error apart, without what the node's log rotation takes, and files that it leaves are not kept",
		Remedy:  "name the command in the descriptor (ml.benchmark_code, server.env.start_command) to have all of it",
	}
	for _, i := range n.Images {
		switch {
		case i.UnreadReason == "" || i.Name != r.benchmark().Image:
		case i.NoSecret: // the executor has the pull secrets and may be able to read it
			c.Message = "whether the image's entrypoint can be read from its registry shows at launch, when the executor asks with the pull secrets: it is then run as a command is, or its output is read from the container's log; asked from here, " + i.UnreadReason
		default:
			c.Message += "; asked from here, " + i.UnreadReason
			c.Remedy += ", or see to it that the platform can ask the image's registry"
		}
	}
	return c
}

// checkPrograms reports whether this machine has the programs that a run needs.
func checkPrograms(s cluster.Survey) []Check {
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.Programs)) {
		a := s.Programs[name]
		c := Check{Topic: TopicPrograms, Subject: name, Message: a.Detail}
		if !a.Yes {
			c.Grade, c.Class = Fault, event.ClassUser
			c.Message = "this machine, whose own programs are run, does not have it: " + a.Detail
			c.Remedy = "install it, or run on a Kubernetes cluster, in the image"
		}
		all = append(all, c)
	}
	return all
}

// checkData reports which sources the platform may read.
func checkData(given []DataSource) []Check {
	var all []Check
	for _, d := range given {
		c := Check{Topic: TopicData, Subject: d.Source, Message: "it may be asked for; whether it is there shows when it is fetched"}
		if d.DenyReason != "" {
			c.Grade, c.Class, c.Message = Fault, event.ClassUser, d.DenyReason
			c.Remedy = "name another source, or have the platform's settings allow this one (fetcher.sources)"
		}
		all = append(all, c)
	}
	return all
}

// checkStorageClasses reports whether the storage classes of shared volumes exist.
func checkStorageClasses(s cluster.Survey) []Check {
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.StorageClasses)) {
		a, class := s.StorageClasses[name], "class of storage "+name
		if name == "" {
			class = "class of storage that is the default"
		}
		c := Check{Topic: TopicStorage, Subject: name, Message: "the cluster has the " + class + ", for what pods share"}
		switch {
		case a.UnknownReason != "":
			c.Grade, c.Message = Warning, "the "+class+" cannot be looked up: "+a.UnknownReason
			c.Remedy = "look: kubectl get storageclasses"
		case !a.Yes:
			c.Grade, c.Class, c.Message = Fault, event.ClassPlatform,
				"the cluster has no "+class+", so that what pods are to share never comes"
			c.Remedy = "name one that there is in the platform's settings (executor.pods.shared.storage_class), or have each pod get a copy (executor.pods.shared.off)"
		}
		all = append(all, c)
	}
	return all
}

// checkStorage reports the disk space for data, logs and results, which are on the
// node's own disk. It picks the node with the least space among those that fit a role.
func checkStorage(n Requirements, s cluster.Survey) []Check {
	const little = 1 << 30
	var least *corev1.Node
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if !slices.ContainsFunc(rolesOf(n.Objects), func(r role) bool { return unfitReason(*node, r, s.LocalMachine) == "" }) {
			continue
		}
		if q, ok := node.Status.Allocatable[corev1.ResourceEphemeralStorage]; ok && (least == nil || q.Cmp(ephemeralStorage(least)) < 0) {
			least = node
		}
	}
	if least == nil {
		return nil
	}
	size := ephemeralStorage(least)
	c := Check{
		Topic: TopicStorage, Subject: least.Name,
		Message: fmt.Sprintf("data, logs and results lie on the node's own disk, of which pods may use %.1f GiB",
			float64(size.Value())/(1<<30)),
	}
	if size.Value() < little {
		c.Grade, c.Remedy = Warning, "make room there: a pod that uses more is evicted"
	}
	return []Check{c}
}
