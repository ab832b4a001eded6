package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// programs are the nodes' programs of Debian packages.
func programs() map[string]string {
	return map[string]string{
		"containerd": "containerd", "ctr": "containerd", "runc": "runc", "iptables": "iptables", "ip": "iproute2",
		"nsenter": "util-linux", "mmdebstrap": "mmdebstrap", "/usr/lib/cni/bridge": "containernetworking-plugins",
	}
}

// Packages installs those of Debian's packages that nodes need and that are missing.
func Packages(ctx context.Context) error {
	var missing []string
	for program, name := range programs() {
		if _, err := exec.LookPath(program); err != nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	fmt.Fprintln(os.Stderr, "installing", missing)
	return aptInstall(ctx, missing...)
}

// aptInstall runs apt-get install with arguments, and once more with new lists if a package is not found by the old ones.
func aptInstall(ctx context.Context, args ...string) error {
	install := append([]string{"apt-get", "-q", "install", "-y", "--no-install-recommends"}, args...)
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := run(ctx, "/", env, install...); err == nil {
		return nil
	}
	if err := run(ctx, "/", env, "apt-get", "-q", "update"); err != nil {
		return err
	}
	return run(ctx, "/", env, install...)
}
