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

// probe is what one connection brings before its rate is looked at.
const probe = 8 << 20

// splits reports whether the rest is to be asked for in several parts at once:
// the source can do that, one connection is slow, and there is enough to ask for.
func (d *download) splits() bool {
	return !d.whole && d.reader.settings.Parts > 1 && d.body.bytes >= probe && d.size-d.at >= 2*partSize &&
		strings.EqualFold(strings.TrimSpace(d.ranges), "bytes") && resumable(d.validators, d.ranges) != "" &&
		d.body.slow(d.reader.settings.Slow)
}

// parallel writes the rest of the body to w, several parts of it on their way
// at once. Why says what went wrong with one of them: then the rest is asked for
// in one piece, which tells whether the source or the way it was asked was to
// blame.
func (d *download) parallel(ctx context.Context, w io.Writer) (why string, err error) {
	d.whole = true
	err = inOrder(ctx, d.reader.settings.Parts, cut(store.Item{}, d.at, d.size), d.bring, func(p *part) error {
		if _, err := w.Write(p.buf); err != nil {
			return err
		}
		d.at, d.failures = p.end, 0
		d.req.Progress(d.at, d.size)
		return nil
	})
	bad := new(partError)
	switch {
	case err == nil:
		d.whole, d.best = false, max(d.best, d.at)
		return "", nil
	case ctx.Err() != nil:
		return d.explain(ctx, err)
	case errors.As(err, bad):
		return bad.Error(), nil
	}
	return "", err
}

// errOther says that a source does not answer with the part that it was asked
// for.
var errOther = errors.New("it does not answer with the part that it was asked for")

// bring reads one part, over as many answers as that takes.
func (d *download) bring(ctx context.Context, p *part) error {
	sub := d.reader.sub(d)
	defer sub.close()
	return sub.bringPart(ctx, p)
}

func (d *download) bringPart(ctx context.Context, p *part) error {
	for d.at = p.at; d.at < p.end; {
		header := make(http.Header)
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", d.at, p.end-1))
		header.Set("If-Range", resumable(d.validators, d.ranges))
		a, err := d.ask(ctx, header)
		if err != nil {
			return err
		}
		if a.status == http.StatusOK || a.status == http.StatusPartialContent && !continues(a.header.Get("Content-Range"), d.at, p.end, d.size) {
			return errOther
		}
		if a.status != http.StatusPartialContent {
			if _, err := d.take(ctx, a); err != nil {
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

// fill reads what one answer has of a part. An answer that is cut is no error.
func (d *download) fill(ctx context.Context, p *part) error {
	defer d.close()
	for d.at < p.end {
		n, rerr := d.body.read(ctx, p.buf[d.at-p.at:])
		if d.at += int64(n); n > 0 {
			d.failures = 0
		}
		if rerr == nil || d.at == p.end {
			continue
		}
		if errors.Is(rerr, io.EOF) {
			rerr = io.ErrUnexpectedEOF
		}
		why, err := d.explain(ctx, rerr)
		if err != nil {
			return err
		}
		d.blame = event.ClassInfra
		return d.pause(ctx, why, 0)
	}
	return nil
}
