package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// probe is the number of bytes on one connection before its rate is judged.
const probe = 8 << 20

// shouldSplit reports whether to fetch the rest in parallel parts: the source supports
// that, the connection is slow, and enough is left.
func (d *download) shouldSplit() bool {
	return !d.noSplit && d.reader.settings.Parts > 1 && d.body.bytes >= probe && d.size-d.offset >= 2*partSize &&
		strings.EqualFold(strings.TrimSpace(d.acceptRanges), "bytes") && resumable(d.validators, d.acceptRanges) != "" &&
		d.body.slow(d.reader.settings.Slow)
}

// parallel writes the rest of the body to w, with several parts in parallel; why is the
// reason if a part failed. Then the rest is requested in one piece, which shows whether
// the source or the parallel requests were at fault.
func (d *download) parallel(ctx context.Context, w io.Writer) (why string, err error) {
	d.noSplit = true
	err = fetchInOrder(ctx, d.reader.settings.Parts, splitParts(store.BucketObject{}, d.offset, d.size), d.bring, func(p *part) error {
		if _, err := w.Write(p.buf); err != nil {
			return err
		}
		d.offset, d.failures = p.end, 0
		d.req.OnProgress(d.offset, d.size)
		return nil
	})
	bad, isPart := errors.AsType[partError](err)
	switch {
	case err == nil:
		d.noSplit, d.maxOffset = false, max(d.maxOffset, d.offset)
		return "", nil
	case ctx.Err() != nil:
		return d.explain(ctx, err)
	case isPart:
		return bad.Error(), nil
	}
	return "", err
}

// errWrongPart is the error for a source that does not answer with the requested part.
var errWrongPart = errors.New("it does not answer with the part that it was asked for")

// bring fetches one part, with as many responses as that takes.
func (d *download) bring(ctx context.Context, p *part) error {
	sub := d.reader.partDownload(d)
	defer sub.close()
	return sub.bringPart(ctx, p)
}

func (d *download) bringPart(ctx context.Context, p *part) error {
	for d.offset = p.at; d.offset < p.end; {
		header := make(http.Header)
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", d.offset, p.end-1))
		header.Set("If-Range", resumable(d.validators, d.acceptRanges))
		a, err := d.request(ctx, header)
		if err != nil {
			return err
		}
		if a.status == http.StatusOK || a.status == http.StatusPartialContent &&
			!continues(a.header.Get("Content-Range"), d.offset, p.end, d.size) {
			return errWrongPart
		}
		if a.status != http.StatusPartialContent {
			if _, err := d.acceptResponse(ctx, a); err != nil {
				return err
			}
			continue
		}
		if err := d.fill(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// fill reads one response into a part. A cut response is not an error.
func (d *download) fill(ctx context.Context, p *part) error {
	defer d.close()
	for d.offset < p.end {
		n, rerr := d.body.read(ctx, p.buf[d.offset-p.at:])
		if d.offset += int64(n); n > 0 {
			d.failures = 0
		}
		if rerr == nil || d.offset == p.end {
			continue
		}
		if errors.Is(rerr, io.EOF) {
			rerr = io.ErrUnexpectedEOF
		}
		why, err := d.explain(ctx, rerr)
		if err != nil {
			return err
		}
		d.blameClass = event.ClassInfra
		return d.waitRetry(ctx, why, 0)
	}
	return nil
}
