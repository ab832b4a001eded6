// Command kube is the control plane of the oldest Kubernetes that the platform
// works with, as far as API suites need it: the store, the API server and the
// controllers, by the name that it is called by.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		run(controllers.NewControllerManagerCommand())
	default:
		fmt.Fprintf(os.Stderr, "kube: no part is called %q; there are etcd, kube-apiserver and kube-controller-manager\n", name)
		os.Exit(2)
	}
}

func run(c *cobra.Command) { os.Exit(cli.Run(c)) }
