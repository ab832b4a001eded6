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

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Decide says of everything that a run needs whether it is there, in the order in
// which it would need it.
func Decide(n Need, s cluster.Survey) []Check {
	if n.Refused != "" {
		return append([]Check{{Topic: TopicPlan, Grade: Fault, Message: n.Refused, Class: event.ClassUser}}, data(n.Data)...)
	}
	if n.Away != "" {
		away := Check{
			Topic: TopicCluster, Grade: Fault, Class: event.ClassPlatform, Message: "the cluster cannot be asked: " + n.Away,
			Remedy: "look whether it runs, and whether the platform's settings name it right",
		}
		return append([]Check{away}, data(n.Data)...)
	}
	checks := []Check{{Topic: TopicCluster, Message: s.Name}}
	checks = append(checks, limits(n.Objects)...)
	checks = append(checks, refusals(s)...)
	checks = append(checks, permissions(n, s)...)
	checks = append(checks, served(s)...)
	checks = append(checks, classes(s)...)
	if len(s.Refusals) == 0 { // else it has been said why there is none
		checks = append(checks, rooms(rolesOf(n.Objects), s)...)
	}
	checks = append(checks, quotas(n, s)...)
	checks = append(checks, storageClasses(s)...)
	checks = append(checks, storage(n, s)...)
	checks = append(checks, secretsThere(n, s)...)
	checks = append(checks, images(n, s)...)
	checks = append(checks, programsThere(s)...)
	return append(checks, data(n.Data)...)
}

// limits says where nothing ends a run that does not end by itself. A benchmark may
// be meant to go on, so that is no fault.
func limits(objects []cluster.Object) []Check {
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

// refusals are the objects that the cluster is known not to take.
func refusals(s cluster.Survey) []Check {
	var all []Check
	for _, r := range s.Refusals {
		all = append(all, Check{Topic: TopicPlan, Subject: r.Object, Grade: Fault, Message: r.Message, Class: cmp.Or(r.Class, event.ClassUser)})
	}
	return all
}

// permissions are those that the platform lacks, by account.
func permissions(n Need, s cluster.Survey) []Check {
	if s.Machine {
		return nil
	}
	missing, unknown := map[string][]string{}, ""
	for r, a := range s.Rights {
		switch {
		case a.Unknown != "":
			unknown = max(unknown, a.Unknown)
		case !a.Yes:
			missing[r.Account] = append(missing[r.Account], rightWords(r))
		}
	}
	var all []Check
	for _, account := range slices.Sorted(maps.Keys(missing)) {
		who := account
		if who == "" {
			who = "the platform's account"
		}
		slices.Sort(missing[account])
		all = append(all, Check{
			Topic: TopicPermissions, Subject: account, Grade: Fault, Class: event.ClassPlatform,
			Message: fmt.Sprintf("%s may not %s", who, strings.Join(missing[account], ", ")),
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
		all = append(all, Check{Topic: TopicPermissions, Message: fmt.Sprintf("all %d permissions in the namespace %s", len(s.Rights), n.Scope)})
	}
	return all
}

func rightWords(r cluster.Right) string {
	words := r.Verb + " " + r.Resource
	if r.Group != "" {
		words += "." + r.Group
	}
	return words
}

// served says whether the cluster has the kinds that not every cluster has.
func served(s cluster.Survey) []Check {
	var all []Check
	for _, k := range slices.SortedFunc(maps.Keys(s.Kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		a, c := s.Kinds[k], Check{Topic: TopicKinds, Subject: k.Kind, Message: "the cluster has " + k.Kind + " of " + k.Group}
		switch {
		case a.Unknown != "":
			c.Grade, c.Message = Warning, k.Kind+" of "+k.Group+" cannot be looked up: "+a.Unknown
		case !a.Yes:
			c.Grade, c.Class = Fault, event.ClassPlatform
			c.Message = "the cluster has no " + k.Kind + " of " + k.Group
			c.Remedy = "install what brings it, or take the platform's setting away that asks for it (executor.pods.scheduler, executor.pods.queue, executor.pods.mpi_operator)"
		}
		if !s.Machine {
			all = append(all, c)
		}
	}
	return all
}

// classes says whether priority classes are there.
func classes(s cluster.Survey) []Check {
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.Classes)) {
		a, c := s.Classes[name], Check{Topic: TopicKinds, Subject: name, Message: "the cluster has the priority class"}
		switch {
		case a.Unknown != "":
			c.Grade, c.Message = Warning, "the priority class cannot be looked up: "+a.Unknown
		case !a.Yes:
			c.Grade, c.Class, c.Message = Fault, event.ClassPlatform, "the cluster has no such priority class, so that every pod is refused"
			c.Remedy = "make it, or change the platform's setting executor.pods.priority_class"
		case s.Machine:
			continue
		}
		all = append(all, c)
	}
	return all
}

// secretsThere says whether the secrets that a run names are there.
func secretsThere(n Need, s cluster.Survey) []Check {
	var all []Check
	keys := slices.SortedFunc(maps.Keys(s.Secrets), func(a, b cluster.SecretKey) int {
		return strings.Compare(a.Name+"/"+a.Key, b.Name+"/"+b.Key)
	})
	for _, k := range keys {
		if c, ok := secretThere(k, s.Secrets[k], n.Scope, s.Machine); ok {
			all = append(all, c)
		}
	}
	return all
}

func secretThere(k cluster.SecretKey, a cluster.Answer, scope string, machine bool) (Check, bool) {
	c := Check{Topic: TopicSecrets, Subject: strings.TrimSuffix(k.Name+"/"+k.Key, "/"), Message: "it is there"}
	pulls := k.Key == ""
	creation := fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=VALUE", scope, k.Name, k.Key)
	if pulls {
		creation = fmt.Sprintf("kubectl -n %s create secret docker-registry %s --docker-server=REGISTRY --docker-username=USER --docker-password=PASSWORD", scope, k.Name)
	}
	switch {
	case machine && pulls:
		return c, false
	case a.Unknown != "":
		c.Grade, c.Message = Warning, "it cannot be looked up: "+a.Unknown
		c.Remedy = fmt.Sprintf("look: kubectl -n %s get secret %s", scope, k.Name)
	case !a.Yes && machine:
		c.Grade, c.Class, c.Message, c.Remedy = Fault, event.ClassUser, "it cannot be had", a.Words
	case !a.Yes:
		c.Grade, c.Class, c.Message, c.Remedy = Fault, event.ClassUser, fmt.Sprintf("the namespace %s has no secret %s", scope, k.Name), creation
	case !pulls && !machine:
		c.Message = fmt.Sprintf("the secret is there; whether it has the key %s is not looked at", k.Key)
	}
	return c, true
}

// images says of each image that runs by itself whether its program is known: of
// one that is not, less can be known than of a command that the platform runs.
func images(n Need, s cluster.Survey) []Check {
	var all []Check
	for _, i := range n.Images {
		if i.Unread == "" {
			all = append(all, Check{
				Topic: TopicImages, Subject: i.Name,
				Message: fmt.Sprintf("its registry gives its entrypoint (%s, %s): it is run as a command of a descriptor is", i.Platform, i.Digest),
			})
		}
	}
	for _, r := range rolesOf(n.Objects) {
		if entrypoint(r) && !s.Machine { // there it is a refusal
			all = append(all, followed(n, r))
		}
	}
	return all
}

// followed says that a role's output is read from its container's log, and why.
func followed(n Need, r role) Check {
	c := Check{
		Topic: TopicImages, Subject: r.name, Grade: Warning,
		Message: "the image's own entrypoint is run: its output is read from the container's log, without telling standard error apart, without what the node's log rotation takes, and files that it leaves are not kept",
		Remedy:  "name the command in the descriptor (ml.benchmark_code, server.env.start_command) to have all of it",
	}
	for _, i := range n.Images {
		switch {
		case i.Unread == "" || i.Name != r.benchmark().Image:
		case i.NoSecret: // the executor may read it
			c.Message = "whether the image's entrypoint can be read from its registry shows at launch, when the executor asks with the pull secrets: it is then run as a command is, or its output is read from the container's log; asked from here, " + i.Unread
		default:
			c.Message += "; asked from here, " + i.Unread
			c.Remedy += ", or see to it that the platform can ask the image's registry"
		}
	}
	return c
}

// programsThere says whether this machine has what is run.
func programsThere(s cluster.Survey) []Check {
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.Programs)) {
		a := s.Programs[name]
		c := Check{Topic: TopicPrograms, Subject: name, Message: a.Words}
		if !a.Yes {
			c.Grade, c.Class = Fault, event.ClassUser
			c.Message = "this machine, whose own programs are run, does not have it: " + a.Words
			c.Remedy = "install it, or run on a Kubernetes cluster, in the image"
		}
		all = append(all, c)
	}
	return all
}

// data says which sources may be read.
func data(given []Datum) []Check {
	var all []Check
	for _, d := range given {
		c := Check{Topic: TopicData, Subject: d.Source, Message: "it may be asked for; whether it is there shows when it is fetched"}
		if d.Refused != "" {
			c.Grade, c.Class, c.Message = Fault, event.ClassUser, d.Refused
			c.Remedy = "name another source, or have the platform's settings allow this one (fetcher.sources)"
		}
		all = append(all, c)
	}
	return all
}

// storageClasses says whether volumes can be had that pods of a run share.
func storageClasses(s cluster.Survey) []Check {
	var all []Check
	for _, name := range slices.Sorted(maps.Keys(s.Storage)) {
		a, what := s.Storage[name], "class of storage "+name
		if name == "" {
			what = "class of storage that is the default"
		}
		c := Check{Topic: TopicStorage, Subject: name, Message: "the cluster has the " + what + ", for what pods share"}
		switch {
		case a.Unknown != "":
			c.Grade, c.Message = Warning, "the "+what+" cannot be looked up: "+a.Unknown
			c.Remedy = "look: kubectl get storageclasses"
		case !a.Yes:
			c.Grade, c.Class, c.Message = Fault, event.ClassPlatform, "the cluster has no "+what+", so that what pods are to share never comes"
			c.Remedy = "name one that there is in the platform's settings (executor.pods.shared.storage_class), or have each pod get a copy (executor.pods.shared.off)"
		}
		all = append(all, c)
	}
	return all
}

// storage says what disk there is for data, logs and results, which lie on the
// node's own.
func storage(n Need, s cluster.Survey) []Check {
	const little = 1 << 30
	var least *corev1.Node
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if !slices.ContainsFunc(rolesOf(n.Objects), func(r role) bool { return unfit(*node, r, s.Machine) == "" }) {
			continue
		}
		if q, ok := node.Status.Allocatable[corev1.ResourceEphemeralStorage]; ok && (least == nil || q.Cmp(disk(least)) < 0) {
			least = node
		}
	}
	if least == nil {
		return nil
	}
	size := disk(least)
	c := Check{Topic: TopicStorage, Subject: least.Name, Message: fmt.Sprintf("data, logs and results lie on the node's own disk, of which pods may use %.1f GiB", float64(size.Value())/(1<<30))}
	if size.Value() < little {
		c.Grade, c.Remedy = Warning, "make room there: a pod that uses more is evicted"
	}
	return []Check{c}
}
