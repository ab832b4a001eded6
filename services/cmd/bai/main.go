// Command bai runs the platform in one process, and has commands for its operator.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // the authorities of the web, for a machine without certificates: a small image has none

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/adminverb"
	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	if err := command(os.Stdout, os.Stderr).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bai:", err)
		os.Exit(1)
	}
}

func command(out, log io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "bai",
		Short:         "The benchmark platform",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(out)
	root.SetErr(log)
	root.AddCommand(standaloneCommand(out, log), adminverb.Command(out), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(out, "bai", version) },
	})
	return root
}

const standaloneHelp = `Run the whole platform in one process, for laptops, continuous integration and
development: an embedded broker, store, object store and cluster, all in one data
directory, on one loopback address. Not for production.

Kill it at any moment and start it again on the same directory: benchmarks that
were running go on meanwhile, and every run comes to its end. Ctrl-C, SIGTERM and
SIGHUP (a closed terminal) end the running benchmarks first, within 20 s; a second
signal kills them. Their runs fail with the reason PlatformStopped, of class
platform, once the platform runs again. With --keep-pods benchmarks go on.

Container images are not run: commands run with this machine's own programs,
unless --kubeconfig names a Kubernetes cluster. What its pods need of the platform
is then served on the network at --pod-address.

--kafka and --elasticsearch put servers of yours in place of the embedded broker
and store, as the settings can, which say the rest: docs/operations.md.`

func standaloneCommand(out, log io.Writer) *cobra.Command {
	o := options{out: out, log: log}
	c := &cobra.Command{
		Use:   "standalone",
		Short: "Run the whole platform in one process",
		Long:  standaloneHelp,
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return standalone(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.data, "data", datadir.Default(), "`directory` of everything that the platform remembers")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "`address` of the API; port 0 means a free one")
	f.BoolVar(&o.allowAnyone, "allow-anyone", false,
		"listen also where others than this machine reach the API, who can then run any command as this user")
	f.StringVar(&o.config, "config", "", "TOML `file` with settings over the defaults")
	f.IntVar(&o.slots, "slots", 0, "`number` of runs that may run at a time; 0 means what the settings say, 1 by default")
	f.StringSliceVar(&o.without, "without", nil,
		"`services` that run in processes of their own, with the settings of services.toml in the directory: gateway, fetcher, executor, watcher, metrics-pusher, analyst")
	f.BoolVar(&o.keepPods, "keep-pods", false, "leave running benchmarks alone when the platform is told to end")
	f.BoolVar(&o.replay, "replay", false, "hear every event again from the beginning, which changes nothing")
	f.BoolVar(&o.noNamespaces, "no-namespaces", false, "run benchmarks without namespaces, as where the kernel refuses them")
	f.StringVar(&o.kube.config, "kubeconfig", "",
		"`file` that names the Kubernetes cluster to run benchmarks in; empty means that they run on this machine")
	f.StringVar(&o.kube.namespace, "kube-namespace", "", "`namespace` of Kubernetes to run benchmarks in; empty means default")
	f.StringVar(&o.kube.address, "pod-address", "",
		"`address` of this machine as pods of Kubernetes reach it; empty means the one that speaks to the API server")
	f.StringVar(&o.kube.image, "pod-image", "", "`image` with bai-pod for pods of Kubernetes")
	f.StringSliceVar(&o.external.brokers, "kafka", nil, "`HOST:PORT`s of Kafka brokers, in place of the embedded one")
	f.StringSliceVar(&o.external.elasticsearch, "elasticsearch", nil, "`URL`s of an Elasticsearch, in place of the embedded store")
	f.StringVar(&o.podBinary, "pod-binary", "", "`path` of bai-pod; empty means beside this program, or on PATH")
	return c
}
