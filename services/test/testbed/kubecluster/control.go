//go:build linux

package kubecluster

import (
	"context"
	"fmt"
	"os"
)

// auditPolicy records requests with their users, without Kubernetes' own constant ones.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [system:apiserver, system:kube-scheduler, system:kube-proxy, system:kube-controller-manager, dns, simulator]
- level: None
  userGroups: [system:nodes, "system:serviceaccounts:kube-system"]
- level: None
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: None
  nonResourceURLs: ["/readyz*", "/healthz*", "/livez*"]
- level: Metadata
`

// dnsConfig has two blocks: in one, "template" would answer before "kubernetes".
const dnsConfig = `cluster.local:53 in-addr.arpa:53 {
  bind %[1]s
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %[2]q bed
    ttl 1
  }
  cache 1
}
.:53 {
  bind %[1]s
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`

// controlPlane starts the store and the API server and, once that is ready, the other
// components.
func (m *machine) controlPlane(ctx context.Context) error {
	if err := m.etcd(); err != nil {
		return err
	}
	if err := m.apiserver(); err != nil {
		return err
	}
	if err := m.ready(ctx); err != nil {
		return err
	}
	if m.sharesHostNetwork() && m.NoControllers {
		return nil
	}
	if err := m.controllers(); err != nil {
		return err
	}
	if m.sharesHostNetwork() && !m.Scheduler {
		return nil
	}
	if err := m.scheduler(); err != nil || m.sharesHostNetwork() {
		return err
	}
	if err := os.WriteFile(m.path("Corefile"), fmt.Appendf(nil, dnsConfig, m.address(), m.pki("dns.kubeconfig")), 0o600); err != nil {
		return err
	}
	return m.kube("coredns", "-conf", m.path("Corefile"))
}

func (m *machine) etcd() error {
	client := "http://127.0.0.1:" + port(m.Ports.Etcd)
	return m.kube("etcd", "--data-dir", m.path("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", "http://127.0.0.1:0")
}

func (m *machine) apiserver() error {
	if err := os.WriteFile(m.path("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	if !m.sharesHostNetwork() {
		// webhooks and aggregated APIs are Services, to which only nodes know the way
		if err := command("ip", "route", "add", services, "via", nodeAddress(1)); err != nil {
			return err
		}
	}
	args := []string{
		"--etcd-servers", "http://127.0.0.1:" + port(m.Ports.Etcd),
		"--bind-address", m.address(), "--secure-port", port(m.Ports.API), "--service-cluster-ip-range", services,
		"--tls-cert-file", m.pki("apiserver.crt"), "--tls-private-key-file", m.pki("apiserver.key"), "--client-ca-file", m.pki("ca.crt"),
		"--kubelet-client-certificate", m.pki("kubelet-client.crt"), "--kubelet-client-key", m.pki("kubelet-client.key"),
		"--kubelet-certificate-authority", m.pki("ca.crt"), "--kubelet-preferred-address-types", "InternalIP",
		"--service-account-key-file", m.pki("serviceaccounts.crt"), "--service-account-signing-key-file", m.pki("serviceaccounts.key"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--authorization-mode", "Node,RBAC", "--allow-privileged",
		"--default-not-ready-toleration-seconds", "5", "--default-unreachable-toleration-seconds", "5",
		"--audit-policy-file", m.path("audit.yaml"), "--audit-log-path", m.path("audit.log"), "--audit-log-mode", "blocking",
	}
	if m.sharesHostNetwork() {
		args = append(args, "--endpoint-reconciler-type", "none")
		if m.NoControllers { // service accounts are then made here
			args = append(args, "--disable-admission-plugins", "ServiceAccount")
		}
	} else {
		args = append(args, "--advertise-address", m.address())
	}
	return m.kube("kube-apiserver", args...)
}

func (m *machine) controllers() error {
	config, secure, silence := m.pki("controllers.kubeconfig"), "10257", "30s"
	if m.sharesHostNetwork() {
		secure, silence = "0", "60s" // simulated nodes are many, and are not lost
	}
	return m.kube("kube-controller-manager", "--kubeconfig", config, "--bind-address", "127.0.0.1", "--secure-port", secure,
		"--authentication-kubeconfig", config, "--authorization-kubeconfig", config,
		"--service-account-private-key-file", m.pki("serviceaccounts.key"), "--use-service-account-credentials",
		"--root-ca-file", m.pki("ca.crt"), "--cluster-signing-cert-file", m.pki("ca.crt"), "--cluster-signing-key-file", m.pki("ca.key"),
		"--leader-elect=false", "--kube-api-qps", "200", "--kube-api-burst", "400",
		"--node-monitor-period", "1s", "--node-monitor-grace-period", silence)
}

func (m *machine) scheduler() error {
	config, secure := m.pki("scheduler.kubeconfig"), "10259"
	if m.sharesHostNetwork() {
		secure = "0"
	}
	return m.kube("kube-scheduler", "--kubeconfig", config, "--bind-address", "127.0.0.1", "--secure-port", secure, "--leader-elect=false",
		"--kube-api-qps", "500", "--kube-api-burst", "1000",
		"--authentication-kubeconfig", config, "--authorization-kubeconfig", config)
}
