// Package real holds the suites that run the platform on a real Kubernetes.
package real
