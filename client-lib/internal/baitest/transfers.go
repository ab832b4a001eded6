package baitest

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Transferred file is one of a run that is exported or was imported.
type Transferred struct{ Name, Content string }

// SetExport sets the files and the description of a run's export.
func (p *Platform) SetExport(id string, about *baiv1.Export, files ...Transferred) {
	p.mu.Lock()
	defer p.mu.Unlock()
	about.RunId = id
	p.exports[id] = transfer{about, files}
}

// Imported returns the files with which a run was imported, in the order in
// which they came; none where it was not.
func (p *Platform) Imported(id string) []Transferred {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.imported[id]
}

// ImportedIntoHistory reports whether an import of a run asked for a place in the history of its task.
func (p *Platform) ImportedIntoHistory(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inHistory[id]
}

type transfer struct {
	about *baiv1.Export
	files []Transferred
}

// A mover is the part of a platform that exports and imports runs.
type transferService struct {
	baiv1.UnimplementedTransferServiceServer

	p *Platform
}

// ExportRun implements bai.v1.TransferService. A place is the name of a file
// that was sent.
func (m transferService) ExportRun(req *baiv1.ExportRunRequest, stream grpc.ServerStreamingServer[baiv1.ExportRunResponse]) error {
	r, err := m.p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return err
	}
	m.p.mu.Lock()
	x := m.p.exports[r.run.GetId()]
	m.p.mu.Unlock()
	if x.about == nil {
		return status.Error(codes.NotFound, "nothing is known of what it would be")
	}
	if err := stream.Send(&baiv1.ExportRunResponse{Export: x.about, Place: req.GetPlace()}); err != nil {
		return err
	}
	from := 1 + slices.IndexFunc(x.files, func(f Transferred) bool { return f.Name == req.GetPlace() })
	for _, f := range x.files[from:] {
		if err := stream.Send(&baiv1.ExportRunResponse{File: f.Name, Data: []byte(f.Content), Last: true, Place: f.Name}); err != nil {
			return err
		}
	}
	return nil
}

// ImportRun implements bai.v1.TransferService. It wants all that is no document.
func (m transferService) ImportRun(stream grpc.BidiStreamingServer[baiv1.ImportRunRequest, baiv1.ImportRunResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	id := first.GetImport().GetRunId()
	already := m.p.Imported(id) != nil
	var wanted []string
	for _, f := range first.GetImport().GetFiles() {
		if name := f.GetName(); name == "metrics/samples.jsonl" || name == "logs/lines.jsonl" || strings.HasPrefix(name, "artifacts/") {
			wanted = append(wanted, name)
		}
	}
	files, err := receive(stream.Recv, len(first.GetImport().GetFiles())-len(wanted))
	if err != nil {
		return err
	}
	if already {
		wanted = nil
	}
	if err := stream.Send(
		&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Wanted{Wanted: &baiv1.WantedFiles{Files: wanted}}}); err != nil {
		return err
	}
	more, err := receive(stream.Recv, len(wanted))
	if err != nil {
		return err
	}
	if first.GetImport().GetHistory() {
		m.p.mu.Lock()
		m.p.inHistory[id] = true
		m.p.mu.Unlock()
	}
	if !already {
		m.p.mu.Lock()
		m.p.imported[id] = append(files, more...)
		m.p.mu.Unlock()
	}
	return stream.Send(
		&baiv1.ImportRunResponse{Step: &baiv1.ImportRunResponse_Imported{Imported: &baiv1.Imported{
			RunId: id, Already: already,
			Notes: []string{"its name is taken"},
		}}})
}

// receive takes so many files.
func receive(next func() (*baiv1.ImportRunRequest, error), n int) ([]Transferred, error) {
	var files []Transferred
	for open := false; n > 0; {
		req, err := next()
		if err != nil {
			return nil, err
		}
		if files, open = add(files, open, req); !open {
			n--
		}
	}
	return files, nil
}

// add adds a piece to files, and says whether its file goes on.
func add(files []Transferred, open bool, req *baiv1.ImportRunRequest) ([]Transferred, bool) {
	if !open {
		files = append(files, Transferred{Name: req.GetFile()})
	}
	files[len(files)-1].Content += string(req.GetData())
	return files, !req.GetLast()
}
