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

// folderConcurrency is the number of files of a folder that are requested at once.
const folderConcurrency = 16

// bucketDownload is the download of an object or folder in a bucket.
type bucketDownload struct {
	*download
	bucketLocation

	opened Bucket
}

// bucket downloads an object, or everything below a prefix as a folder, into put.
func (r *Reader) bucket(ctx context.Context, p bucketLocation, req Request, put Sink) (Result, error) {
	if isUnsafeKey(p.key) {
		return Result{}, refused("source %s cannot be read: %s", Redact(req.URL), unsafeKeyText)
	}
	host := p.scheme + "://" + p.bucket
	d := r.download(host, req)
	defer r.hosts.release(host)
	opened, err := r.open(ctx, p.scheme, p.bucket, r.client)
	if err != nil {
		return Result{}, failed(event.ClassPlatform, "source %s cannot be read: %v", d.name, err)
	}
	defer func() { _ = opened.Close() }() // it was only read
	b := &bucketDownload{download: d, bucketLocation: p, opened: opened}
	for {
		a, err := b.get(ctx, put)
		if !errors.Is(err, store.ErrConflict) {
			return a, err
		}
		b.req.Previous, b.blameClass = Validators{}, event.ClassInfra
		if err := b.waitRetry(ctx, "it changes while it is read", 0); err != nil {
			return Result{}, err
		}
	}
}

// get downloads the current content. The error is store.ErrConflict if the content
// changes meanwhile.
func (b *bucketDownload) get(ctx context.Context, put Sink) (Result, error) {
	if b.key == "" || strings.HasSuffix(b.key, "/") {
		return b.folder(ctx, b.key, put)
	}
	item, err := b.stat(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return b.folder(ctx, b.key+"/", put)
	}
	if err != nil {
		return Result{}, err
	}
	v := Validators{ETag: tagOf(item)}
	if v == b.req.Previous {
		return Result{Validators: v, Unchanged: true}, nil
	}
	if item.Size > b.reader.settings.MaxSize {
		return Result{}, tooLarge(b.name, b.reader.settings.MaxSize)
	}
	err = put(ctx, item.Size, func(w io.Writer) error {
		return b.fetchInOrder(ctx, b.reader.settings.Parts, splitParts(item, 0, item.Size), func(p *part) error {
			_, err := w.Write(p.buf)
			b.req.OnProgress(p.end, item.Size)
			return err
		})
	})
	return Result{Validators: v}, err
}

// stat returns the object, or store.ErrNotFound.
func (b *bucketDownload) stat(ctx context.Context) (item store.BucketObject, err error) {
	err = b.retry(ctx, func(ctx context.Context) (err error) {
		item, err = b.opened.Stat(ctx, b.key)
		return err
	})
	return item, err
}

// folder downloads everything below prefix.
func (b *bucketDownload) folder(ctx context.Context, prefix string, put Sink) (Result, error) {
	items, err := b.list(ctx, prefix)
	if errors.Is(err, store.ErrNotFound) {
		return Result{}, failed(event.ClassUser, "source %s: there is no bucket %q", b.name, b.bucket)
	}
	if err != nil {
		return Result{}, err
	}
	all, why := arrange(b.name, prefix, items)
	switch {
	case why != nil:
		return Result{}, why
	case len(all) == 0:
		return Result{}, failed(event.ClassUser, "source %s: bucket %q has no object %q, and none below it", b.name, b.bucket, b.key)
	}
	bytes, size := sizes(all)
	if bytes > b.reader.settings.MaxSize {
		return Result{}, tooLarge(b.name, b.reader.settings.MaxSize)
	}
	v := Validators{ETag: tagOfAll(all)}
	if v == b.req.Previous {
		return Result{Validators: v, Unchanged: true}, nil
	}
	var tree Tree
	err = put(ctx, size, func(w io.Writer) (err error) {
		tree, err = b.pack(ctx, all, bytes, w)
		return err
	})
	return Result{Validators: v, Tree: &tree}, err
}

// list returns all objects below prefix, up to the maximum of the settings.
func (b *bucketDownload) list(ctx context.Context, prefix string) (items []store.BucketObject, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		items = items[:0]
		for it, err := range b.opened.List(ctx, prefix) {
			if err != nil {
				return err
			}
			b.body.resetStall()
			if items = append(items, it); len(items) > b.reader.settings.MaxFiles {
				return tooMany(b.name, b.reader.settings.MaxFiles)
			}
		}
		return nil
	})
	return items, err
}

// pack writes the archive of a folder.
func (b *bucketDownload) pack(ctx context.Context, all []member, bytes int64, w io.Writer) (Tree, error) {
	a, next, done := newArchive(w), 0, int64(0)
	err := b.fetchInOrder(ctx, min(folderConcurrency, b.reader.settings.PerHost), partsOf(all), func(p *part) error {
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
		b.req.OnProgress(done, bytes)
		return nil
	})
	if err != nil {
		return Tree{}, err
	}
	return a.close()
}

// partsOf returns the parts of all files, at least one for each file.
func partsOf(all []member) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for _, m := range all {
			if m.Size == 0 && !yield(&part{item: m.BucketObject}) {
				return
			}
			for p := range splitParts(m.BucketObject, 0, m.Size) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// fill reads one response into a part, from at on, and returns the new offset.
func (b *bucketDownload) fill(ctx context.Context, p *part, at int64) (int64, error) {
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

// fetchInOrder fetches parts, and returns the reason if one of them fails.
func (b *bucketDownload) fetchInOrder(ctx context.Context, n int, parts iter.Seq[*part], use func(*part) error) error {
	err := fetchInOrder(ctx, n, parts, b.bring, use)
	if bad, ok := errors.AsType[partError](err); ok {
		return bad.error
	}
	if err != nil && ctx.Err() != nil {
		_, err = b.explain(ctx, err)
	}
	return err
}

// bring fetches one part, with as many responses as that takes.
func (b *bucketDownload) bring(ctx context.Context, p *part) error {
	at := p.at
	if at == p.end {
		return nil
	}
	sub := &bucketDownload{download: b.reader.partDownload(b.download), bucketLocation: b.bucketLocation, opened: b.opened}
	err := sub.retry(ctx, func(ctx context.Context) error {
		r, err := b.opened.Read(ctx, p.item, at, p.end)
		if err != nil {
			return err
		}
		sub.body.attach(r)
		at, err = sub.fill(ctx, p, at)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return store.ErrConflict // it existed a moment ago
	}
	return err
}

// partDownload returns a download of a part of d.
func (r *Reader) partDownload(d *download) *download {
	return &download{
		reader: r, host: d.host, req: d.req, name: d.name, size: d.size, validators: d.validators,
		acceptRanges: d.acceptRanges,
	}
}
