package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PullSecret returns the data of a Secret with which images are pulled, by key.
func (c *Cluster) PullSecret(ctx context.Context, scope, name string) (map[string][]byte, error) {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	s, err := c.core.Secrets(scope).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, wrapError("get secret "+name, err)
	}
	return s.Data, nil
}
