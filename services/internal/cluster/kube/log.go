package kube

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Log implements cluster.Logger. Lines that the node rotated away are missing.
func (c *Cluster) Log(ctx context.Context, l cluster.Log) (io.ReadCloser, error) {
	options := &corev1.PodLogOptions{Container: c.containerOf(l), Follow: true, Timestamps: true}
	if !l.Since.IsZero() {
		since := metav1.NewTime(l.Since)
		options.SinceTime = &since
	}
	stream, err := c.core.Pods(l.Scope).GetLogs(l.Pod, options).Stream(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("log of pod %s: %w", l.Pod, cluster.ErrNotFound)
	}
	if err != nil {
		return nil, wrapError("read the log of pod "+l.Pod, err)
	}
	return stream, nil
}
