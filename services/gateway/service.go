// Package gateway is where users meet the platform: it takes runs in, keeps what
// is known of each, and answers for them.
//
// Its packages are the steps: intake (a request → bai.submitted), record (events
// → runs in the store), shelf and artifact (descriptors and files that are kept),
// api (gRPC) and rest (the same over HTTP, on the same port).
package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/gateway/record"
	"github.com/benchmark-ai/bai/services/gateway/rest"
	"github.com/benchmark-ai/bai/services/gateway/shelf"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Intake intake.Settings `toml:"intake"`
	Record record.Settings `toml:"record"`
	API    api.Settings    `toml:"api"`

	REST        rest.Settings     `toml:"rest"`
	Descriptors shelf.Settings    `toml:"descriptors"`
	Artifacts   artifact.Settings `toml:"artifacts"`
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	return errors.Join(s.Intake.Validate(), s.Record.Validate(), s.API.Validate(), s.REST.Validate(), s.Artifacts.Validate())
}

// Bus carries events.
type Bus interface {
	// Consume returns the part that hands what step hears to step, and carries
	// on what step answers. Parts of one group share the events.
	Consume(group string, step service.Step) service.Part
	// Publish returns when the events are kept for all who hear them. With an
	// error some of them may be.
	Publish(ctx context.Context, events ...event.Event) error
}

// Store keeps what is remembered and known of runs, and what they wrote.
type Store interface {
	store.Docs
	store.Lister
	store.Runs
	Written
}

// Written is what runs wrote, and how to follow it.
type Written interface {
	store.Reader
	store.Notifier
}

// Deps are what the service needs from others.
type Deps struct {
	Bus      Bus
	Store    Store
	Listener net.Listener                    // where the API is served, over gRPC and HTTP
	Objects  artifact.Objects                // where files that runs leave lie; nil: none are kept
	Source   shelf.Source                    // reads descriptors that lie elsewhere; nil: none are read
	Renderer api.Renderer                    // nil: nothing is rendered
	Token    func(run string) string         // the right to speak for a run; nil: nobody has it
	OpenAPI  []byte                          // the description of what is served over HTTP
	Entropy  io.Reader                       // crypto/rand.Reader but in tests
	Ready    func(ctx context.Context) error // why calls would fail now; nil means they never would
	Version  api.Version
	Log      *zap.Logger
}

// New returns the parts of the service, by name. The names are unique among
// all services, so that one process can run several.
func New(s Settings, d Deps) map[string]service.Part {
	in := intake.New(s.Intake, intake.Deps{Store: d.Store, Bus: d.Bus, IDs: intake.NewIDs(d.Entropy), Now: time.Now, Log: d.Log})
	files := artifact.New(s.Artifacts, d.Objects, d.Store, time.Now)
	server := api.New(s.API, api.Deps{
		Intake: in, Store: d.Store, Shelf: shelf.New(s.Descriptors, d.Store, d.Source, time.Now), Renderer: d.Renderer, Artifacts: files,
		Ready: d.Ready, Version: d.Version, Log: d.Log,
	})
	http2, others, split := rest.Split(s.REST, d.Listener)
	inside := rest.NewInside()
	parts := map[string]service.Part{
		"gateway/outbox":    in.Run,
		"gateway/reconcile": record.NewReconciler(s.Record, d.Store, d.Bus, d.Log).Run,
		"gateway/port":      split,
		"gateway/api":       server.Serve(http2, inside),
		"gateway/rest":      rest.Serve(s.REST, rest.Deps{API: inside, Files: files, Token: d.Token, Ready: d.Ready, OpenAPI: d.OpenAPI, Log: d.Log}, others),
	}
	for _, step := range record.NewRecorder(d.Store).Steps() {
		parts["gateway/record/"+step.Topic] = d.Bus.Consume("gateway", step)
	}
	return parts
}
