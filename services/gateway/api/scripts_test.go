package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// upload sends content under a digest, in pieces of that many bytes.
func (w *fixture) upload(ctx context.Context, digest string, size int64, content []byte, piece int) (*baiv1.UploadScriptResponse, error) {
	w.t.Helper()
	stream, err := baiv1.NewScriptServiceClient(w.conn).UploadScript(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	req := &baiv1.UploadScriptRequest{Sha256: digest, Size: size}
	for len(content) > 0 {
		n := min(piece, len(content))
		req.Data, content = content[:n], content[n:]
		if stream.Send(req) != nil {
			break // the response has the reason
		}
		req = &baiv1.UploadScriptRequest{}
	}
	return stream.CloseAndRecv()
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestCodeIsUploadedInPiecesAndARunHasIt(t *testing.T) {
	w := newFixture(t, options{})
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	digest := digestOf(content)
	ann := metadata.AppendToOutgoingContext(t.Context(), baiv1.UserMetadata, "ann")
	for i := range 2 {
		resp, err := w.upload(ann, strings.ToUpper(digest), int64(len(content)), content, 70_001)
		if err != nil || resp.GetRepeated() != (i == 1) || resp.GetScript().GetSha256() != digest || resp.GetScript().GetSize() != int64(len(content)) {
			t.Fatalf("uploaded: %v, %v", resp, err)
		}
	}
	if _, err := w.store.Doc(t.Context(), store.KindCodeBundle, "ann!"+digest); err != nil {
		t.Errorf("it is not kept for who sent it: %v", err)
	}
	id := w.submit(func(req *baiv1.SubmitRunRequest) { req.ScriptSha256 = digest })
	for _, recorded := range []bool{false, true} {
		resp, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
		if got := resp.GetRun().GetScript(); err != nil || got.GetSha256() != digest || got.GetSize() != int64(len(content)) {
			t.Errorf("recorded %t: the run has %v, %v", recorded, got, err)
		}
		w.bus.Replay()
	}
	if sent := w.submitted(id); len(sent) == 0 || sent[0].Bundle == nil || sent[0].Bundle.SHA256 != digest {
		t.Errorf("said %+v", sent)
	}
}

func TestCodeThatIsNotTakenIsSaidToBe(t *testing.T) {
	w := newFixture(t, options{settings: api.Settings{CallTimeout: 3 * time.Second}})
	content := []byte("hello")
	for name, tt := range map[string]struct {
		digest string
		size   int64
		want   codes.Code
		text   string
	}{
		"other bytes":       {digestOf([]byte("jello")), 5, codes.InvalidArgument, "what came has sha256"},
		"another size":      {digestOf(content), 6, codes.InvalidArgument, "5 bytes came where 6 were announced"},
		"no digest":         {"", 5, codes.InvalidArgument, "is not the SHA-256"},
		"more than is kept": {digestOf(content), 5 << 20, codes.ResourceExhausted, "takes 4 MiB at most"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.upload(t.Context(), tt.digest, tt.size, content, 2)
			checkRefused(t, err, tt.want, tt.text)
		})
	}
	stream, err := baiv1.NewScriptServiceClient(w.conn).UploadScript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&baiv1.UploadScriptRequest{Sha256: digestOf(content), Size: 5, Data: content[:2]}); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&baiv1.UploadScriptResponse{}); status.Code(err) != codes.Aborted {
		t.Errorf("a client that sends nothing more: %v", err)
	}
	if _, err := baiv1.NewScriptServiceClient(w.conn).GetScript(t.Context(), &baiv1.GetScriptRequest{Sha256: digestOf(content)}); status.Code(err) != codes.NotFound {
		t.Errorf("found what was not taken: %v", err)
	}
	_, err = w.client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid), ScriptSha256: digestOf(content)})
	if faults := checkRefused(t, err, codes.InvalidArgument, "is not kept here"); len(faults) != 1 || faults[0].GetPath() != "script_sha256" {
		t.Errorf("faults %v", faults)
	}
}
