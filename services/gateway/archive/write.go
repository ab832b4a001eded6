package archive

import (
	"bytes"
	"context"
	"strconv"
)

// Sizes of the pieces of an export.
const (
	chunk        = 256 << 10 // bytes in a piece of a text or artifact
	maxPage      = 1000      // samples, lines or changes in a piece
	firstPage    = 100       // the same in the first piece, while their size is unknown
	maxPageBytes = 1 << 20   // bytes in a piece of several samples, lines or changes
)

// emitFunc sends a part of a file; next is the cursor of the part after it, and last
// reports that no part follows.
type emitFunc func(data []byte, next string, last bool) error

// endCursor is the cursor behind the end of a file.
const endCursor = "end"

// textWriter returns a writer of a text.
func textWriter(text []byte) func(context.Context, string, emitFunc) error {
	return func(_ context.Context, at string, out emitFunc) error {
		n, err := parseOffset(at, int64(len(text)))
		if err != nil {
			return err
		}
		for rest := text[n:]; ; {
			size := min(chunk, len(rest))
			n += int64(size)
			last := size == len(rest)
			if err := out(rest[:size], strconv.FormatInt(n, 10), last); err != nil || last {
				return err
			}
			rest = rest[size:]
		}
	}
}

// pageWriter returns a writer of one line for each item that read returns, in parts of
// limited size.
func pageWriter[T any](
	read func(ctx context.Context, at string, limit int) ([]T, string, error), form func(T) any,
) func(context.Context, string, emitFunc) error {
	return func(ctx context.Context, at string, out emitFunc) error {
		for limit := firstPage; at != endCursor; limit = min(2*limit, maxPage) {
			text, next, err := readPage(ctx, at, &limit, read, form)
			if err != nil {
				return err
			}
			if err := out(text, next, next == endCursor); err != nil || next == endCursor {
				return err
			}
			at = next
		}
		return out(nil, endCursor, true)
	}
}

// readPage returns the items after at, and the cursor behind them. If limit items are
// too large, it lowers limit and reads fewer.
func readPage[T any](
	ctx context.Context, at string, limit *int, read func(ctx context.Context, at string, limit int) ([]T, string, error), form func(T) any,
) ([]byte, string, error) {
	for {
		all, next, err := read(ctx, at, *limit)
		if err != nil {
			return nil, "", err
		}
		text, err := encodeRows(all, form)
		switch {
		case err != nil:
			return nil, "", err
		case len(text) > maxPageBytes && *limit > 1:
			*limit = max(1, *limit/8)
		case len(all) < *limit:
			return text, endCursor, nil
		default:
			return text, next, nil
		}
	}
}

func encodeRows[T any](all []T, form func(T) any) ([]byte, error) {
	var b bytes.Buffer
	for i := range all {
		if err := appendLine(&b, form(all[i])); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
