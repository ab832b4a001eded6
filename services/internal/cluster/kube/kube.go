package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// Settings say which cluster it is, and how much of it may be asked. The zero
// value is the cluster and the namespace that this process runs in as a pod.
type Settings struct {
	Kubeconfig string        `toml:"kubeconfig"` // path of a kubeconfig; empty means the service account of this pod
	Context    string        `toml:"context"`    // of the kubeconfig; empty means its current one
	Namespace  string        `toml:"namespace"`  // of the objects of all runs; empty means default
	QPS        float32       `toml:"qps"`        // calls a second; zero means 200
	Burst      int           `toml:"burst"`      // calls at a time above that; zero means 400
	Timeout    time.Duration `toml:"timeout"`    // of a call; zero means 30 s
	Resync     time.Duration `toml:"resync"`     // how often Watch hands everything over again; zero means 1 min
	// how long a deleted pod may stay after its grace before its node is taken for lost, and it is deleted by force; zero means 1 min
	Lost time.Duration `toml:"lost"`
	// MainOnly has Observe leave out events and the Jobs of other roles, for who
	// has no use for them.
	MainOnly bool `toml:"-"`
	// Kinds is kinds of the objects of runs beside Jobs, Pods, Services, ConfigMaps
	// and Secrets, each as mpijobs.v2beta1.kubeflow.org. All but podgroups are watched.
	Kinds []string `toml:"kinds"`
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.QPS < 0 || s.Burst < 0 {
		errs = append(errs, errors.New("kubernetes.qps, kubernetes.burst: must not be negative"))
	}
	if s.Timeout < 0 || s.Resync < 0 || s.Lost < 0 {
		errs = append(errs, errors.New("kubernetes.timeout, kubernetes.resync, kubernetes.lost: must not be negative"))
	}
	for _, k := range s.Kinds {
		if gvr, _ := schema.ParseResourceArg(k); gvr == nil {
			errs = append(errs, fmt.Errorf("kubernetes.kinds: %q, want resource.version.group, as in mpijobs.v2beta1.kubeflow.org", k))
		}
	}
	return errors.Join(errs...)
}

// Set reports whether the settings name a cluster.
func (s Settings) Set() bool { return s.Kubeconfig != "" || s.Namespace != "" }

// Scope is the namespace of the objects.
func (s Settings) Scope() string { return cmp.Or(s.Namespace, "default") }

func (s Settings) lostAfter() time.Duration { return cmp.Or(s.Lost, time.Minute) }

// Cluster is a Kubernetes cluster. It is a cluster.Creator, Deleter and Observer. Several goroutines may use it.
type Cluster struct {
	settings      Settings
	log           *zap.Logger
	objects       dynamic.Interface
	metadata      metadata.Interface
	batch         batchv1.BatchV1Interface
	core          corev1.CoreV1Interface
	authorization authv1.AuthorizationV1Interface
	kinds         []schema.GroupVersionResource // that can be listed, beside jobs
	version       func(context.Context) error

	discovery discovery.DiscoveryInterface

	mu     sync.Mutex
	cache  *clusterCache // nil until the first Watch
	stop   context.CancelFunc
	closed bool
	wg     sync.WaitGroup

	nodesMu sync.Mutex
	nodes   nodeList // the last answer
}

// New returns the cluster, without connecting to it. The caller closes it.
func New(s Settings, log *zap.Logger) (*Cluster, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	config, err := s.restConfig()
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	if log == nil {
		log = zap.NewNop()
	}
	c := &Cluster{settings: s, log: log, kinds: deletableKinds(s.Kinds)}
	if err := c.connect(config); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return c, nil
}

// restConfig returns how to reach the cluster. One rate limit holds for all clients.
func (s Settings) restConfig() (*rest.Config, error) {
	config, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "benchmark-ai " + rest.DefaultKubernetesUserAgent()
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cmp.Or(s.QPS, 200), cmp.Or(s.Burst, 400))
	return config, nil
}

func (s Settings) loadConfig() (*rest.Config, error) {
	if s.Kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: s.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: s.Context}).ClientConfig()
}

func (c *Cluster) connect(config *rest.Config) (err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	if c.objects, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), client); err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	if c.batch, err = batchv1.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if c.core, err = corev1.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if c.authorization, err = authv1.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, client); err != nil {
		return err
	}
	c.version = func(ctx context.Context) error { return checkReady(ctx, client, config.Host) }
	return nil
}

// Server returns host and port of the API server.
func (s Settings) Server() (host, port string, err error) {
	config, err := s.loadConfig()
	if err != nil {
		return "", "", fmt.Errorf("kubernetes: %w", err)
	}
	u, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return "", "", fmt.Errorf("kubernetes: %w", err)
	}
	return u.Hostname(), cmp.Or(u.Port(), "443"), nil
}

// checkReady asks the API server whether it is ready, which needs no permission.
func checkReady(ctx context.Context, client *http.Client, host string) error {
	u, _, err := rest.DefaultServerURL(host, "", schema.GroupVersion{}, true)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// Ready returns why the cluster cannot be used: it cannot be reached, or the cache of the watchers is incomplete.
func (c *Cluster) Ready(ctx context.Context) error {
	if err := c.version(ctx); err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil {
		return nil
	}
	return c.cache.syncError()
}

// Close ends all watches. Pods in the cluster go on.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	if c.stop != nil {
		c.stop()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// withTimeout bounds one call.
func (c *Cluster) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(c.settings.Timeout, 30*time.Second))
}
