//go:build linux

package kubecluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
`

// kubeletConfig never evicts because of the disk, which others fill too.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
healthzPort: 0
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
failSwapOn: false
protectKernelDefaults: false
tlsCertFile: %[3]q
tlsPrivateKeyFile: %[4]q
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[5]q}}
authorization: {mode: Webhook}
clusterDomain: cluster.local
clusterDNS: [%[6]s]
resolvConf: ""
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
evictionHard: {memory.available: 100Mi, nodefs.available: 0%%, imagefs.available: 0%%, nodefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: %s
clusterCIDR: %s.0.0/16
clientConnection: {kubeconfig: %q}
healthzBindAddress: 127.0.0.1:10256
conntrack: {maxPerCore: 0}
`

// Folders of a node that have a fixed place. Each node has its own, so that
// nodes do not meet there: some on disk, the others in memory.
func diskFolders() []string { return []string{"/var/lib/kubelet", "/var/lib/containerd"} }

func memoryFolders() []string {
	return []string{"/run/netns", "/run/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/etc/cni/net.d", "/opt/cni"}
}

// node starts the programs that run pods.
func (m *machine) node(ctx context.Context) error {
	// A process of the node itself needs some way to a Service's address, before
	// the proxy's rules replace it. There is no way out: a pull fails at once.
	if err := command("ip", "route", "add", services, "via", hostAddress); err != nil {
		return err
	}
	for path, value := range map[string]string{
		"net/ipv4/ip_forward":                "1",
		"net/bridge/bridge-nf-call-iptables": "1", // Services between pods of one node
		"net/ipv4/conf/all/route_localnet":   "1",
	} {
		if err := os.WriteFile("/proc/sys/"+path, []byte(value), 0); err != nil {
			return fmt.Errorf("set %s: %w", path, err)
		}
	}
	if err := m.folders(); err != nil {
		return err
	}
	if err := m.files(); err != nil {
		return err
	}
	if err := m.containerd(ctx); err != nil {
		return err
	}
	if err := m.ready(ctx); err != nil {
		return err
	}
	if err := m.kube("kubelet", "--config", m.path("kubelet.yaml"), "--kubeconfig", m.pki(m.Name+".kubeconfig"),
		"--node-ip", m.address()); err != nil {
		return err
	}
	return m.kube("kube-proxy", "--config", m.path("proxy.yaml"))
}

func (m *machine) folders() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil { // inside this machine alone
		return fmt.Errorf("share mounts: %w", err)
	}
	for _, d := range diskFolders() {
		own := m.path(filepath.Base(d))
		if err := os.MkdirAll(own, 0o700); err != nil {
			return err
		}
		if err := unix.Mount(own, d, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", d, err)
		}
	}
	for _, d := range memoryFolders() {
		if err := unix.Mount("none", d, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", d, err)
		}
	}
	return nil
}

func (m *machine) files() error {
	number := m.Number - firstNode
	for path, text := range map[string]string{
		"/etc/cni/net.d/10-pods.conflist": fmt.Sprintf(cniConfig, podRange(number)),
		m.path("containerd.toml"):         fmt.Sprintf(containerdConfig, PauseImage),
		m.path("kubelet.yaml"): fmt.Sprintf(kubeletConfig, m.address(), groupOf(m.Name), m.pki(m.Name+".crt"),
			m.pki(m.Name+".key"), m.pki("ca.crt"), controlPlane),
		m.path("proxy.yaml"): fmt.Sprintf(proxyConfig, m.Name, podPrefix, m.pki("proxy.kubeconfig")),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// containerd starts it, and brings the images.
func (m *machine) containerd(ctx context.Context) error {
	path, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	if err := m.run("containerd", path, "-c", m.path("containerd.toml"), "-l", "warn"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := await(ctx, 20*time.Millisecond, "wait for containerd", func() error { return command("ctr", "version") }); err != nil {
		return err
	}
	for _, tar := range m.Images {
		if err := command("ctr", "-n", "k8s.io", "images", "import", tar); err != nil {
			return err
		}
	}
	return nil
}
