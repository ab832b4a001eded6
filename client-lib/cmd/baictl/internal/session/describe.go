package session

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Sources is the help of each verb that reads a descriptor.
const Sources = `FILE is a file, "-" for the standard input, or a place that the platform reads:
https://…, s3://… or stored:NAME[@VERSION] (see baictl descriptors).`

// Detaching is the help of each verb that follows a run.
const Detaching = `Ctrl-C detaches: the run goes on, baictl says how to come back and exits with
4, as after --timeout: the outcome is not known. A second Ctrl-C ends baictl at
once. A broken connection is reported once and restored.`

// Reader reads descriptors for a team; empty means that of the context.
func (s *Session) Reader(namespace string) input.Reader {
	return input.Reader{In: s.Env.In, Fetch: func(ctx context.Context, uri string) ([]byte, *baiv1.Origination, error) {
		c, err := s.Client()
		if err != nil {
			return nil, nil, err
		}
		team, err := s.Team(namespace)
		if err != nil {
			return nil, nil, err
		}
		return c.Fetch(ctx, team, uri)
	}}
}

// Team is the one that a flag names, or else that of the context.
func (s *Session) Team(namespace string) (string, error) {
	if namespace != "" {
		return namespace, nil
	}
	where, err := s.ResolveContext()
	return where.Namespace, err
}

// PrintFaults prints faults, one a line.
func (s *Session) PrintFaults(faults []*baiv1.Fault) {
	for _, f := range s.Locate(faults) {
		s.Screen.Note(s.Screen.Fold(printer.Fault(f)))
	}
}

// FailWithFaults prints the faults of one descriptor, and returns their number as a
// FaultsError.
func (s *Session) FailWithFaults(faults []*baiv1.Fault) error {
	s.PrintFaults(faults)
	return &exitcode.FaultsError{Faults: input.CountErrors(faults), Files: 1, Of: 1}
}

// FailIfInvalid prints the faults for which a platform refused a descriptor, and
// returns their number as a FaultsError; another error is returned as it is.
func (s *Session) FailIfInvalid(err error) error {
	if e, ok := errors.AsType[*bai.InvalidError](err); ok && len(e.Faults) > 0 {
		return s.FailWithFaults(e.Faults)
	}
	return err
}
