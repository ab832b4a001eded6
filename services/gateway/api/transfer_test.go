package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// exportedFiles are the files of a run, in order.
type exportedFiles []*baiv1.ImportRunRequest

// exportRun exports a run.
func (w *fixture) exportRun(run string) (head *baiv1.Export, files exportedFiles, err error) {
	stream, err := baiv1.NewTransferServiceClient(w.conn).ExportRun(w.t.Context(), &baiv1.ExportRunRequest{Run: run})
	if err != nil {
		return nil, nil, err
	}
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return head, files, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if res.GetExport() != nil {
			head = res.GetExport()
			continue
		}
		files = append(files, &baiv1.ImportRunRequest{File: res.GetFile(), Data: res.GetData(), Last: res.GetLast()})
	}
}

// importRequest returns the first request of an import. Every file is one piece.
func (x exportedFiles) importRequest() *baiv1.ImportRunRequest {
	in := &baiv1.Import{Format: 1, RunId: finishedRun}
	for _, f := range x {
		sum := sha256.Sum256(f.GetData())
		in.Files = append(in.Files, &baiv1.TransferredFile{Name: f.GetFile(), Size: int64(len(f.GetData())), Sha256: hex.EncodeToString(sum[:])})
	}
	return &baiv1.ImportRunRequest{Import: in}
}

// importRun sends all requests at once, and returns the last response.
func (w *fixture) importRun(requests ...*baiv1.ImportRunRequest) (*baiv1.Imported, error) {
	stream, err := baiv1.NewTransferServiceClient(w.conn).ImportRun(w.t.Context())
	if err != nil {
		return nil, err
	}
	for _, req := range requests {
		if err := stream.Send(req); err != nil {
			break // the response has the reason
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	for {
		res, err := stream.Recv()
		if err != nil || res.GetImported() != nil {
			return res.GetImported(), err
		}
	}
}

// putFinishedRun stores a run that has finished.
func (w *fixture) putFinishedRun(t *testing.T) {
	t.Helper()
	run, change := storetest.NewRun(finishedRun, time.Unix(1, 0).UTC())
	end := time.Unix(9, 0).UTC()
	run.Descriptor, run.Phase, run.Outcome, run.Attempt, run.Ended = valid, event.PhaseFinished, event.Succeeded, 1, &end
	if err := w.store.PutRun(t.Context(), run, change); err != nil {
		t.Fatal(err)
	}
}

func TestARunTravelsFromOneServerToAnother(t *testing.T) {
	w, other := newFixture(t, options{}), newFixture(t, options{})
	w.putFinishedRun(t)
	head, files, err := w.exportRun(finishedRun)
	if err != nil || head.GetRunId() != finishedRun || head.GetFormat() != 1 || head.GetPlatformVersion() != "v1.2.3" || !head.GetComplete() {
		t.Fatalf("%v, %v", head, err)
	}
	requests := append([]*baiv1.ImportRunRequest{files.importRequest()}, files...)
	for _, already := range []bool{false, true} {
		if already {
			requests = requests[:len(requests)-2] // samples and lines are not requested any more
		}
		got, err := other.importRun(requests...)
		if err != nil || got.GetRunId() != finishedRun || got.GetAlready() != already {
			t.Errorf("imported: %v, %v; want already %t", got, err, already)
		}
	}
	if _, err := other.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: finishedRun}); err != nil {
		t.Error(err)
	}
	if n := len(other.bus.TakeLines()); n > 0 {
		t.Errorf("%d events were said of it", n)
	}
}

func TestWhyRunsDoNotTravelIsTold(t *testing.T) {
	w := newFixture(t, options{settings: api.Settings{CallTimeout: 3 * time.Second}})
	w.putFinishedRun(t)
	_, files, err := w.exportRun(finishedRun)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.exportRun("01k8h4fzqh3v7x9y2m5n8p0r4z")
	checkRefused(t, err, codes.NotFound, "does not exist")
	_, err = w.importRun(&baiv1.ImportRunRequest{File: "run.json"})
	checkRefused(t, err, codes.InvalidArgument, "is missing in the first request")
	newer := files.importRequest()
	newer.Import.Format = 9
	_, err = w.importRun(newer)
	checkRefused(t, err, codes.FailedPrecondition, "reads up to 1")
	_, err = w.importRun(files.importRequest())
	checkRefused(t, err, codes.Aborted, "unexpected EOF")
	files[0].Data = append(files[0].GetData()[:len(files[0].GetData())-3], "?}\n"...)
	_, err = w.importRun(append([]*baiv1.ImportRunRequest{files.importRequest()}, files...)...)
	if faults := checkRefused(t, err, codes.InvalidArgument, "run.json:"); len(faults) != 1 || faults[0].GetFile() != "run.json" || faults[0].GetLine() == 0 {
		t.Errorf("faults: %v", faults)
	}
	stream, err := baiv1.NewTransferServiceClient(w.conn).ImportRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv() // no more messages are sent
	checkRefused(t, err, codes.Unavailable, "nothing came for 3s")
}
