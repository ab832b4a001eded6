package bai

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Code is code that runs can be sent along with: an archive. Package script makes
// it of a folder.
type Code struct {
	SHA256  string      // of its bytes, hex
	Size    int64       // in bytes
	Content io.ReaderAt // its bytes
}

// chunkSize is how much of an archive travels at once.
const chunkSize = 256 << 10

// Send stores code on the platform, for some minutes at least, so that a run can be
// submitted with its digest. It sends the bytes only if the platform does not have them,
// and reports whether it had them. Send retries while the platform is unavailable.
func (c *Client) Send(ctx context.Context, code Code) (there bool, err error) {
	if err := c.requireFeatures(ctx, []requiredFeature{{3, "code that is sent along", true}}); err != nil {
		return false, fmt.Errorf("send code: %w", err)
	}
	_, err = callWithRetry(ctx, c, c.scripts.GetScript, &baiv1.GetScriptRequest{Sha256: code.SHA256, Owner: c.settings.Owner})
	if err == nil {
		return true, nil
	}
	if _, none := errors.AsType[*NotFoundError](err); none {
		err = c.drain(ctx, c.upload(code))
	}
	if e, ok := errors.AsType[*ServerError](err); ok && e.Code == codes.ResourceExhausted {
		err = &InvalidError{Message: e.Message} // it is too much: again it would be
	}
	if err != nil {
		return false, fmt.Errorf("send code: %w", err)
	}
	return false, nil
}

// upload sends all of an archive, and awaits that it is kept.
func (c *Client) upload(code Code) streamFunc {
	return func(ctx context.Context, p streamWatchdog) error {
		stream, err := c.scripts.UploadScript(ctx)
		if err != nil {
			return err
		}
		content := io.NewSectionReader(code.Content, 0, code.Size)
		for sent := int64(0); sent < code.Size; {
			data := make([]byte, min(chunkSize, code.Size-sent))
			if _, err := io.ReadFull(content, data); err != nil {
				return fmt.Errorf("read the code: %w", err)
			}
			req := &baiv1.UploadScriptRequest{Data: data}
			if sent == 0 {
				req.Sha256, req.Size, req.Owner = code.SHA256, code.Size, c.settings.Owner
			}
			p.beforeRecv()
			if err := stream.Send(req); err != nil {
				break // the answer says why
			}
			sent += int64(len(data))
		}
		p.beforeRecv()
		if _, err = stream.CloseAndRecv(); err == nil {
			p.afterRecv()
		}
		return err
	}
}
