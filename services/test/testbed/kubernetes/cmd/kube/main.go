// Command kube is Kubernetes in one binary: the control plane, its store, the programs of
// a node, cluster DNS and kubectl. The name by which it is called, a link's, chooses the
// part; so does its first argument. One binary links once and shares its text in memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// parts are the programs. Each reads os.Args as its own.
func parts() map[string]func() {
	return map[string]func(){
		"coredns": dns,
		"etcd":    func() { etcdmain.Main(os.Args) },
		"kubectl": func() { run(kubectl.NewDefaultKubectlCommand()) },
		"kubelet": func() { run(kubelet.NewKubeletCommand(context.Background())) },

		"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() { run(controllers.NewControllerManagerCommand()) },
		"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
		"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	}
}

func main() {
	all := parts()
	name := filepath.Base(os.Args[0])
	if _, named := all[name]; !named && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	part, ok := all[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "kube: no part is called %q; there are %s\n", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		os.Exit(2)
	}
	if name != "coredns" {
		hideFlagsOfDNS()
	}
	part()
}

func run(c *cobra.Command) { os.Exit(cli.Run(c)) }

// dns runs CoreDNS with the plugins that are linked in, in the order of a
// query's way.
func dns() {
	dnsserver.Directives = []string{"bind", "errors", "template", "cache", "kubernetes"}
	coremain.Run()
}

// hideFlagsOfDNS takes out of the common set the flags that CoreDNS registers
// there by being linked: the parts of Kubernetes make that set their own, and
// would have its -version for theirs.
func hideFlagsOfDNS() {
	foreign := []string{"conf", "dns.port", "p", "pidfile", "plugins", "quiet", "version"}
	kept := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flag.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(foreign, f.Name) {
			kept.Var(f.Value, f.Name, f.Usage)
		}
	})
	flag.CommandLine = kept
}
