package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/plan"
)

// kubeOptions are the command line's options for Kubernetes.
type kubeOptions struct {
	config, namespace string
	address           string // address of this machine for pods
	image             string // image with bai-pod
}

// podCluster is the cluster that runs the objects of this platform.
type podCluster interface {
	launch.Cluster
	cluster.Observer
	cluster.Occupier
	cluster.Surveyor
}

// apply sets the options of the command line in the settings.
func (o kubeOptions) apply(s *settings) {
	if o.config != "" {
		s.Kubernetes.Kubeconfig = o.config
	}
	if o.namespace != "" {
		s.Kubernetes.Namespace = o.namespace
	}
	if o.image != "" {
		s.Executor.Pods.Image = o.image
	}
	if !s.Kubernetes.Set() {
		return
	}
	s.Executor.Engine, s.Executor.Pods.Scope = plan.EngineKubernetes, s.Kubernetes.Scope()
	if s.Executor.Pods.Image == "" {
		s.Executor.Pods.Image = podImage()
	}
}

// podImage returns the name of the image with bai-pod of this version.
func podImage() string {
	return "docker.io/benchmark-ai/bai-pod:" + strings.NewReplacer("+", "-", "/", "-").Replace(version)
}

// door is the platform's HTTP endpoint for pods. If the gateway runs here, it forwards
// requests for the objects and artifacts of a run, which need the run's token.
// Otherwise it serves all objects, below a secret path.
type door struct {
	listener net.Listener
	secret   string // first part of the objects' path without a gateway
	objects  *os.Root
	gateway  *httputil.ReverseProxy // nil if the gateway runs elsewhere
}

// openDoor finds the address of this machine for pods, and listens on a port that stays
// the same, because pods outlive this process.
func (p *platform) openDoor(ctx context.Context) error {
	reached, ok := p.settings.kubernetes()
	if !ok {
		return nil
	}
	address := p.options.kube.address
	if address == "" {
		var err error
		if address, err = localAddressFor(ctx, reached); err != nil {
			return fmt.Errorf("find this machine's address as pods reach it: %w; say it with --pod-address", err)
		}
	}
	key, err := p.dir.KeyFile()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return fmt.Errorf("read the key of the runs' tokens: %w", err)
	}
	mac := hmac.New(sha256.New, text)
	mac.Write([]byte("objects"))
	d := &door{secret: hex.EncodeToString(mac.Sum(nil)[:16])}
	if err := os.MkdirAll(p.dir.Join("objects"), 0o700); err != nil {
		return err
	}
	if d.objects, err = os.OpenRoot(p.dir.Join("objects")); err != nil {
		return err
	}
	p.onClose(d.objects.Close)
	if d.listener, err = broker.Listen(address, p.dir.Join("door")); err != nil { //nolint:contextcheck // it outlives the start
		return fmt.Errorf("listen for pods: %w", err)
	}
	if p.listener != nil {
		d.gateway = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: p.listener.Addr().String()})
	}
	p.door = d
	return nil
}

// localAddressFor returns the address of this machine on its route to the API server.
func localAddressFor(ctx context.Context, s kube.Settings) (string, error) {
	host, port, err := s.Server()
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(host, port)) // sends nothing
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	host, _, err = net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// address returns the host for pods, or "" if all pods are local.
func (d *door) address() string {
	if d == nil {
		return ""
	}
	host, _, _ := net.SplitHostPort(d.listener.Addr().String()) // the address of a listener is valid
	return host
}

func (d *door) url() string { return "http://" + d.listener.Addr().String() }

// objectsURL returns the URL of the objects: with a gateway, those of one run, which
// need the run's token; otherwise all objects, below the secret path.
func (d *door) objectsURL() string {
	switch {
	case d == nil:
		return ""
	case d.gateway != nil:
		return d.url() + "/v1/runs/{run}"
	}
	return d.url() + "/" + d.secret
}

// serve serves pods until ctx is done.
func (d *door) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	if d.gateway == nil {
		mux.HandleFunc("GET /"+d.secret+"/objects/{name}", func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, d.objects.FS(), "objects/"+r.PathValue("name"))
		})
	} else {
		mux.Handle("GET /v1/runs/{run}/objects/{name}", d.gateway)
		mux.Handle("PUT /v1/runs/{run}/artifacts/{name...}", d.gateway)
	}
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(d.listener) }()
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-done:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve pods: %w", err)
	}
}

func (p *platform) openKube() (err error) {
	if p.kube, err = kube.New(p.settings.Kubernetes, p.log); err != nil {
		return err
	}
	p.pods = p.kube
	p.onClose(func() error { p.kube.Close(); return nil })
	p.log.Info("pods run in Kubernetes", zap.String("namespace", p.settings.Kubernetes.Scope()),
		zap.String("reach this machine at", p.door.address()))
	return nil
}
