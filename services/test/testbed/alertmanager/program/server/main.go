// Command server is as much of Prometheus' Alertmanager as takes alerts and notifies of them: its API v2, dispatcher, and pipeline of
// notifications. Its own command does not compile from the module, which lacks the built user interface. It reads a configuration file, and
// prints where it listens.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/api"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/config/receiver"
	"github.com/prometheus/alertmanager/dispatch"
	"github.com/prometheus/alertmanager/eventrecorder"
	"github.com/prometheus/alertmanager/featurecontrol"
	"github.com/prometheus/alertmanager/inhibit"
	"github.com/prometheus/alertmanager/marker"
	"github.com/prometheus/alertmanager/nflog"
	"github.com/prometheus/alertmanager/notify"
	"github.com/prometheus/alertmanager/provider/mem"
	"github.com/prometheus/alertmanager/silence"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/alertmanager/timeinterval"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"
)

// retention is how long alerts and notifications are known.
const retention = time.Hour

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// server has the parts that refer to each other.
type server struct {
	log      *slog.Logger
	registry *prometheus.Registry
	recorder eventrecorder.Recorder
	alerts   *mem.Alerts
	silences *silence.Silences
	silencer *silence.Silencer
	groups   marker.GroupMarker
	sent     *nflog.Log
	dispatch *dispatch.Dispatcher
	inhibit  *inhibit.Inhibitor
}

func run(configFile, dir string) error {
	c, err := config.LoadFile(configFile)
	if err != nil {
		return err
	}
	s := &server{log: slog.New(slog.NewTextHandler(os.Stderr, nil)), registry: prometheus.NewRegistry(), groups: marker.NewGroupMarker()}
	if err := s.open(dir); err != nil {
		return err
	}
	handler, err := s.api(c)
	if err != nil {
		return err
	}
	if err := s.start(c); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, handler)
}

// open opens what keeps alerts, silences and notifications.
func (s *server) open(dir string) (err error) {
	if s.sent, err = nflog.New(nflog.Options{
		SnapshotFile: filepath.Join(dir, "nflog"), Retention: retention, Logger: s.log,
		Metrics: s.registry,
	}); err != nil {
		return err
	}
	none := func() int { return 0 }
	s.silences, err = silence.New(silence.Options{
		SnapshotFile: filepath.Join(dir, "silences"), Retention: retention,
		Limits: silence.Limits{MaxSilences: none, MaxSilenceSizeBytes: none},
		Logger: s.log, Metrics: s.registry, EventRecorder: s.recorder,
	})
	if err != nil {
		return err
	}
	s.silencer = silence.NewSilencer(s.silences, s.log, s.recorder)
	s.alerts, err = mem.NewAlerts(context.Background(), time.Minute, 0, s.silencer, s.log, s.recorder,
		s.registry, featurecontrol.NoopFlags{})
	return err
}

// api returns the handler of API v2.
func (s *server) api(c *config.Config) (http.Handler, error) {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "requests"}, []string{"handler", "method", "code"})
	a, err := api.New(api.Options{
		Alerts: s.alerts, Silences: s.silences, GroupMutedFunc: s.groups.Muted, Logger: s.log,
		Registry: s.registry, RequestDuration: durations,
		GroupFunc: func(ctx context.Context, routes func(*dispatch.Route) bool,
			alerts func(*alert.Alert, time.Time) bool,
		) (dispatch.AlertGroups, map[model.Fingerprint][]string, error) {
			return s.dispatch.Groups(ctx, routes, alerts)
		},
	})
	if err != nil {
		return nil, err
	}
	a.Update(c, func(ctx context.Context, labels model.LabelSet) {
		s.inhibit.Mutes(ctx, labels)
		s.silencer.Mutes(ctx, labels)
	})
	return a.Register(route.New(), "/"), nil
}

// start begins to notify.
func (s *server) start(c *config.Config) error {
	texts, err := template.FromGlobs(c.Templates)
	if err != nil {
		return err
	}
	texts.ExternalURL = &url.URL{Scheme: "http", Host: "alertmanager.example.com"}
	receivers := make(map[string][]notify.Integration)
	for _, r := range c.Receivers {
		if receivers[r.Name], err = receiver.BuildReceiverIntegrations(r, texts, s.log); err != nil {
			return err
		}
	}
	s.inhibit = inhibit.NewInhibitor(s.alerts, c.InhibitRules, s.log, s.recorder)
	stage := notify.NewPipelineBuilder(s.registry, featurecontrol.NoopFlags{}, s.recorder).New(
		receivers, func() time.Duration { return 0 }, s.inhibit, s.silencer, timeinterval.NewIntervener(nil), s.groups, s.sent, nil,
	)
	metrics := dispatch.NewDispatcherMetrics(false, s.registry, featurecontrol.NoopFlags{})
	timeout := func(d time.Duration) time.Duration { return max(d, 10*time.Second) }
	s.dispatch = dispatch.NewDispatcher(s.alerts, dispatch.NewRoute(c.Route, nil), stage, s.groups, timeout, time.Minute, nil,
		s.log, s.recorder, metrics, texts)
	go s.inhibit.Run()
	s.inhibit.WaitForLoading()
	go s.dispatch.Run(time.Now())
	s.dispatch.WaitForLoading()
	return nil
}
