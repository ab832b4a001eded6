package source

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// gathering is how many files of a folder are asked for at once.
const gathering = 16

// bucketed is what lies at a place of a bucket, on its way.
type bucketed struct {
	*download
	place

	from Bucket
}

// bucket brings an object, or all that lie below a prefix as a folder, into put.
func (r *Reader) bucket(ctx context.Context, p place, req Request, put Sink) (Answer, error) {
	if oddKey(p.key) {
		return Answer{}, refused("source %s cannot be read: %s", Redact(req.URL), odd)
	}
	host := p.scheme + "://" + p.bucket
	d := r.download(host, req)
	defer r.hosts.leave(host)
	opened, err := r.open(ctx, p.scheme, p.bucket, r.client)
	if err != nil {
		return Answer{}, failed(event.ClassPlatform, "source %s cannot be read: %v", d.name, err)
	}
	defer func() { _ = opened.Close() }() // it was only read
	b := &bucketed{download: d, place: p, from: opened}
	for {
		a, err := b.get(ctx, put)
		if !errors.Is(err, store.ErrConflict) {
			return a, err
		}
		b.req.Known, b.blame = Validators{}, event.ClassInfra
		if err := b.pause(ctx, "it changes while it is read", 0); err != nil {
			return Answer{}, err
		}
	}
}

// get brings what is there now, or says store.ErrConflict if it changes.
func (b *bucketed) get(ctx context.Context, put Sink) (Answer, error) {
	if b.key == "" || strings.HasSuffix(b.key, "/") {
		return b.folder(ctx, b.key, put)
	}
	item, err := b.stat(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return b.folder(ctx, b.key+"/", put)
	}
	if err != nil {
		return Answer{}, err
	}
	v := Validators{ETag: tagOf(item)}
	if v == b.req.Known {
		return Answer{Validators: v, Unchanged: true}, nil
	}
	if item.Size > b.reader.settings.MaxSize {
		return Answer{}, tooLarge(b.name, b.reader.settings.MaxSize)
	}
	err = put(ctx, item.Size, func(w io.Writer) error {
		return b.inOrder(ctx, b.reader.settings.Parts, cut(item, 0, item.Size), func(p *part) error {
			_, err := w.Write(p.buf)
			b.req.Progress(p.end, item.Size)
			return err
		})
	})
	return Answer{Validators: v}, err
}

// stat tells of the object, or says store.ErrNotFound.
func (b *bucketed) stat(ctx context.Context) (item store.Item, err error) {
	err = b.again(ctx, func(ctx context.Context) (err error) {
		item, err = b.from.Stat(ctx, b.key)
		return err
	})
	return item, err
}

// folder brings all that lies below prefix.
func (b *bucketed) folder(ctx context.Context, prefix string, put Sink) (Answer, error) {
	items, err := b.list(ctx, prefix)
	if errors.Is(err, store.ErrNotFound) {
		return Answer{}, failed(event.ClassUser, "source %s: there is no bucket %q", b.name, b.bucket)
	}
	if err != nil {
		return Answer{}, err
	}
	all, why := arrange(b.name, prefix, items)
	switch {
	case why != nil:
		return Answer{}, why
	case len(all) == 0:
		return Answer{}, failed(event.ClassUser, "source %s: bucket %q has no object %q, and none below it", b.name, b.bucket, b.key)
	}
	bytes, size := sizes(all)
	if bytes > b.reader.settings.MaxSize {
		return Answer{}, tooLarge(b.name, b.reader.settings.MaxSize)
	}
	v := Validators{ETag: tagOfAll(all)}
	if v == b.req.Known {
		return Answer{Validators: v, Unchanged: true}, nil
	}
	var tree Tree
	err = put(ctx, size, func(w io.Writer) (err error) {
		tree, err = b.pack(ctx, all, bytes, w)
		return err
	})
	return Answer{Validators: v, Tree: &tree}, err
}

// list tells of all objects below prefix, no more than settings allow.
func (b *bucketed) list(ctx context.Context, prefix string) (items []store.Item, err error) {
	err = b.again(ctx, func(ctx context.Context) error {
		items = items[:0]
		for it, err := range b.from.List(ctx, prefix) {
			if err != nil {
				return err
			}
			b.body.alive()
			if items = append(items, it); len(items) > b.reader.settings.MaxFiles {
				return tooMany(b.name, b.reader.settings.MaxFiles)
			}
		}
		return nil
	})
	return items, err
}

// pack writes the archive of a folder.
func (b *bucketed) pack(ctx context.Context, all []member, bytes int64, w io.Writer) (Tree, error) {
	a, next, done := newArchive(w), 0, int64(0)
	err := b.inOrder(ctx, min(gathering, b.reader.settings.PerHost), partsOf(all), func(p *part) error {
		if p.at == 0 {
			if err := a.begin(all[next].name, p.item.Size, false); err != nil {
				return err
			}
			next++
		}
		if _, err := a.Write(p.buf); err != nil {
			return err
		}
		if p.end == p.item.Size {
			a.end()
		}
		done += int64(len(p.buf))
		b.req.Progress(done, bytes)
		return nil
	})
	if err != nil {
		return Tree{}, err
	}
	return a.close()
}

// partsOf returns the parts of all files, one at least of each.
func partsOf(all []member) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for _, m := range all {
			if m.Size == 0 && !yield(&part{item: m.Item}) {
				return
			}
			for p := range cut(m.Item, 0, m.Size) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// fill reads what one answer has of a part, from at on, and returns how far it
// came.
func (b *bucketed) fill(ctx context.Context, p *part, at int64) (int64, error) {
	for at < p.end {
		n, err := b.body.read(ctx, p.buf[at-p.at:])
		if at += int64(n); n > 0 {
			b.failures = 0
		}
		switch {
		case at == p.end:
		case errors.Is(err, io.EOF):
			return at, io.ErrUnexpectedEOF
		case err != nil:
			return at, err
		}
	}
	return at, nil
}

// inOrder has parts brought, and says what went wrong with them.
func (b *bucketed) inOrder(ctx context.Context, n int, parts iter.Seq[*part], use func(*part) error) error {
	err := inOrder(ctx, n, parts, b.bring, use)
	if bad := new(partError); errors.As(err, bad) {
		return bad.error
	}
	if err != nil && ctx.Err() != nil {
		_, err = b.explain(ctx, err)
	}
	return err
}

// bring reads one part, over as many answers as that takes.
func (b *bucketed) bring(ctx context.Context, p *part) error {
	at := p.at
	if at == p.end {
		return nil
	}
	sub := &bucketed{download: b.reader.sub(b.download), place: b.place, from: b.from}
	err := sub.again(ctx, func(ctx context.Context) error {
		r, err := b.from.Read(ctx, p.item, at, p.end)
		if err != nil {
			return err
		}
		sub.body.begin(r)
		at, err = sub.fill(ctx, p, at)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return store.ErrConflict // it was there a moment ago
	}
	return err
}

// sub returns a download of a part of what d is one of.
func (r *Reader) sub(d *download) *download {
	return &download{reader: r, host: d.host, req: d.req, name: d.name, size: d.size, validators: d.validators, ranges: d.ranges}
}
