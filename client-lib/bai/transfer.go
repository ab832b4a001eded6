package bai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/grpc/codes"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// An ExportPiece is a part of a file of a run that is exported.
type ExportPiece struct {
	Export *baiv1.Export // the export's description; in the first piece only, which has no file
	File   string
	Data   []byte
	Last   bool // the file ends here
}

// transferRevision is the revision of the API that knows of exports and imports.
const transferRevision = 4

// Export returns the files of a run in pieces, those of a file one after the
// other. It goes on where a broken connection left it. After an error there is
// nothing more. Package archive makes a folder or a tar.zst of them.
func (c *Client) Export(ctx context.Context, run string) iter.Seq2[ExportPiece, error] {
	return func(yield func(ExportPiece, error) bool) {
		err := c.requireFeatures(ctx, []requiredFeature{{transferRevision, "exports of runs", true}})
		if err == nil {
			err = c.drain(ctx, c.export(&baiv1.ExportRunRequest{Run: run, Owner: c.settings.Owner}, yield))
		}
		if err != nil {
			yield(ExportPiece{}, fmt.Errorf("export run %q: %w", run, err))
		}
	}
}

func (c *Client) export(req *baiv1.ExportRunRequest, yield func(ExportPiece, error) bool) streamFunc {
	headerSent := false
	return func(ctx context.Context, p streamWatchdog) error {
		stream, err := c.transfer.ExportRun(ctx, req)
		if err != nil {
			return err
		}
		return receiveAll(stream.Recv, p, func(res *baiv1.ExportRunResponse) bool {
			req.Place = res.GetPlace()
			if res.GetExport() != nil && headerSent {
				return true // of the stream that goes on
			}
			headerSent = headerSent || res.GetExport() != nil
			return yield(ExportPiece{Export: res.GetExport(), File: res.GetFile(), Data: res.GetData(), Last: res.GetLast()}, nil)
		})
	}
}

// Importing is a run that comes from another platform.
type Importing struct {
	Format int
	Run    string
	Files  []*baiv1.TransferredFile
	// History makes the run a point of the history of its task.
	History bool
	// Documents sends all files that are neither samples nor lines nor artifacts.
	Documents func(send func(name string, data []byte, last bool) error) error
	// Content sends those files of the others that are wanted.
	Content func(wanted []string, send func(name string, data []byte, last bool) error) error
}

// Import stores the run of another platform under the same ID. It sends the files that
// the platform does not have, and retries while the platform is unavailable. It returns
// an InvalidError for faulty files, and an ExistsError if another run has the ID.
func (c *Client) Import(ctx context.Context, run Importing) (*baiv1.Imported, error) {
	err := c.requireFeatures(ctx, []requiredFeature{
		{transferRevision, "imports of runs", true}, {15, "imports into a history", run.History},
	})
	var done *baiv1.Imported
	if err == nil {
		// The platform may take long to store the data; the connection's keepalive
		// detects a dead platform.
		err = c.read(ctx, streamWatchdog{retryer: newRetryer(c.settings, c.settings.RetryTimeout)},
			func(ctx context.Context, p streamWatchdog) (err error) {
				done, err = c.send(ctx, p, run)
				return err
			})
	}
	if e, ok := errors.AsType[*ServerError](err); ok && e.Code == codes.ResourceExhausted {
		err = &InvalidError{Message: e.Message} // it is too much: again it would be
	}
	if err != nil {
		return nil, fmt.Errorf("import run %q: %w", run.Run, err)
	}
	return done, nil
}

// errEarlyAnswer says that the platform answered before all was sent.
var errEarlyAnswer = errors.New("answered")

// send sends a run and waits until the platform has stored it.
func (c *Client) send(ctx context.Context, p streamWatchdog, run Importing) (*baiv1.Imported, error) {
	stream, err := c.transfer.ImportRun(ctx)
	if err != nil {
		return nil, err
	}
	send := func(req *baiv1.ImportRunRequest) error {
		p.beforeRecv()
		err := stream.Send(req)
		if errors.Is(err, io.EOF) {
			return errEarlyAnswer
		}
		return err
	}
	file := func(name string, data []byte, last bool) error {
		return send(&baiv1.ImportRunRequest{File: name, Data: data, Last: last})
	}
	receive := func() (*baiv1.ImportRunResponse, error) {
		p.beforeRecv()
		res, err := stream.Recv()
		if err == nil {
			p.afterRecv()
		}
		return res, err
	}
	err = send(&baiv1.ImportRunRequest{Import: &baiv1.Import{
		Format: int32(run.Format), RunId: run.Run,
		Files: run.Files, History: run.History,
	}}) //nolint:gosec // a small number
	if err == nil {
		err = run.Documents(file)
	}
	if err != nil && !errors.Is(err, errEarlyAnswer) {
		return nil, err
	}
	res, err := receive()
	if err != nil {
		return nil, err
	}
	if err := run.Content(res.GetWanted().GetFiles(), file); err != nil && !errors.Is(err, errEarlyAnswer) {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	res, err = receive()
	return res.GetImported(), err
}
