package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Survey implements cluster.Surveyor. It does not read Secrets: the answer to a dry-run creation shows whether a Secret exists.
func (c *Cluster) Survey(ctx context.Context, q cluster.SurveyRequest) (cluster.Survey, error) {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return cluster.Survey{}, wrapError("ask the API server for its version", err)
	}
	s := cluster.Survey{
		Name:        fmt.Sprintf("Kubernetes %s, namespace %s", version.GitVersion, q.Scope),
		Permissions: map[cluster.Permission]cluster.Answer{}, Kinds: map[schema.GroupVersionKind]cluster.Answer{},
		Secrets: map[cluster.SecretKey]cluster.Answer{}, PriorityClasses: map[string]cluster.Answer{},
		Networks: map[string]cluster.Answer{},
	}
	for _, r := range q.Permissions {
		s.Permissions[r] = c.checkAccess(ctx, q.Scope, r)
	}
	for _, k := range q.Kinds {
		s.Kinds[k] = c.servesKind(k)
	}
	for _, k := range q.Secrets {
		s.Secrets[k] = c.hasSecret(ctx, q.Scope, k)
	}
	for _, name := range q.PriorityClasses {
		_, err := c.objects.Resource(schema.GroupVersionResource{
			Group: "scheduling.k8s.io", Version: "v1",
			Resource: "priorityclasses",
		}).Get(ctx, name, metav1.GetOptions{})
		s.PriorityClasses[name] = existenceAnswer(err)
	}
	for _, name := range q.Networks {
		s.Networks[name] = c.hasNetwork(ctx, name)
	}
	if len(q.StorageClasses) > 0 {
		s.StorageClasses = c.surveyStorage(ctx, q.StorageClasses)
	}
	c.surveyCapacity(ctx, q.Scope, &s)
	return s, nil
}

// surveyCapacity lists nodes and quotas, and finds the autoscaler.
func (c *Cluster) surveyCapacity(ctx context.Context, scope string, s *cluster.Survey) {
	nodes, err := c.core.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		s.NodesUnknownReason = wrapError("look for nodes", err).Error()
	} else {
		s.Nodes = nodes.Items
	}
	quotas, err := c.core.ResourceQuotas(scope).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.QuotasUnknownReason = wrapError("look for quotas", err).Error()
	} else {
		s.Quotas = quotas.Items
	}
	s.Autoscaler = c.findAutoscaler(ctx)
}

// surveyStorage checks for storage classes.
func (c *Cluster) surveyStorage(ctx context.Context, names []string) map[string]cluster.Answer {
	answers := map[string]cluster.Answer{}
	list, err := c.objects.Resource(schema.GroupVersionResource{
		Group: "storage.k8s.io", Version: "v1",
		Resource: "storageclasses",
	}).List(ctx, metav1.ListOptions{})
	for _, name := range names {
		if err != nil {
			answers[name] = existenceAnswer(err)
			continue
		}
		answers[name] = cluster.Answer{Yes: slices.ContainsFunc(list.Items, func(class unstructured.Unstructured) bool {
			return class.GetName() == name || name == "" && class.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true"
		})}
	}
	return answers
}

// findAutoscaler returns the name of the autoscaler: it finds Karpenter by its API group, and the cluster autoscaler by its status
// ConfigMap.
func (c *Cluster) findAutoscaler(ctx context.Context) string {
	if groups, err := c.discovery.ServerGroups(); err == nil {
		for _, g := range groups.Groups {
			if g.Name == "karpenter.sh" {
				return "Karpenter"
			}
		}
	}
	if _, err := c.core.ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{}); err == nil {
		return "the cluster autoscaler"
	}
	return ""
}

// checkAccess asks the API server whether an account has a permission.
func (c *Cluster) checkAccess(ctx context.Context, scope string, r cluster.Permission) cluster.Answer {
	resource, part, _ := strings.Cut(r.Resource, "/")
	what := &authv1.ResourceAttributes{Namespace: scope, Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: part}
	var status authv1.SubjectAccessReviewStatus
	if r.Account == "" {
		review, err := c.authorization.SelfSubjectAccessReviews().Create(ctx, &authv1.SelfSubjectAccessReview{
			Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what},
		}, metav1.CreateOptions{})
		if err != nil {
			return cluster.Answer{UnknownReason: wrapError("ask for a right", err).Error()}
		}
		status = review.Status
	} else {
		review, err := c.authorization.LocalSubjectAccessReviews(scope).Create(ctx, &authv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: scope},
			Spec:       authv1.SubjectAccessReviewSpec{User: r.Account, Groups: serviceAccountGroups(r.Account), ResourceAttributes: what},
		}, metav1.CreateOptions{})
		if err != nil {
			return cluster.Answer{UnknownReason: wrapError("ask for a right of "+r.Account, err).Error()}
		}
		status = review.Status
	}
	a := cluster.Answer{Yes: status.Allowed, Detail: status.Reason}
	if !status.Allowed && status.EvaluationError != "" {
		a.UnknownReason = status.EvaluationError
	}
	return a
}

// serviceAccountGroups are the groups that a service account is in.
func serviceAccountGroups(account string) []string {
	groups := []string{"system:authenticated"}
	if rest, ok := strings.CutPrefix(account, "system:serviceaccount:"); ok {
		scope, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+scope)
	}
	return groups
}

// servesKind asks the API server whether it serves a kind of object, of any version if none is named.
func (c *Cluster) servesKind(k schema.GroupVersionKind) cluster.Answer {
	if k.Version == "" {
		groups, err := c.discovery.ServerGroups()
		if err != nil {
			return existenceAnswer(err)
		}
		for _, g := range groups.Groups {
			if g.Name == k.Group {
				k.Version = g.PreferredVersion.Version
			}
		}
		if k.Version == "" {
			return cluster.Answer{}
		}
	}
	all, err := c.discovery.ServerResourcesForGroupVersion(k.GroupVersion().String())
	if err != nil {
		return existenceAnswer(err)
	}
	for _, r := range all.APIResources {
		if r.Kind == k.Kind {
			return cluster.Answer{Yes: true}
		}
	}
	return cluster.Answer{}
}

// hasNetwork checks whether a network of Multus exists.
func (c *Cluster) hasNetwork(ctx context.Context, name string) cluster.Answer {
	namespace, inside, both := strings.Cut(name, "/")
	if !both {
		namespace, inside = cluster.NetworksNamespace, name
	}
	resource := schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}
	_, err := c.objects.Resource(resource).Namespace(namespace).Get(ctx, inside, metav1.GetOptions{})
	return existenceAnswer(err)
}

// hasSecret checks whether a Secret exists without reading it, and does not check its keys.
func (c *Cluster) hasSecret(ctx context.Context, scope string, k cluster.SecretKey) cluster.Answer {
	if may := c.checkAccess(ctx, scope, cluster.Permission{Verb: "create", Resource: "secrets"}); !may.Yes {
		return cluster.Answer{UnknownReason: "who looks for it has no right to secrets"}
	}
	_, err := c.core.Secrets(scope).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: k.Name, Namespace: scope}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	switch {
	case err == nil:
		return cluster.Answer{}
	case apierrors.IsAlreadyExists(err):
		return cluster.Answer{Yes: true}
	}
	return cluster.Answer{UnknownReason: wrapError("ask for secret "+k.Name, err).Error()}
}

// existenceAnswer translates the error of a get to whether the object exists.
func existenceAnswer(err error) cluster.Answer {
	switch {
	case err == nil:
		return cluster.Answer{Yes: true}
	case apierrors.IsNotFound(err):
		return cluster.Answer{}
	}
	return cluster.Answer{UnknownReason: wrapError("ask for it", err).Error()}
}
