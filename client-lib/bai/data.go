package bai

import (
	"context"
	"fmt"
	"iter"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Data returns the stored data sets, in the order of their digests. An error is the last
// element.
func (c *Client) Data(ctx context.Context) iter.Seq2[*baiv1.StoredData, error] {
	return func(yield func(*baiv1.StoredData, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.ListDataResponse, error) {
			res, err := callWithRetry(ctx, c, c.data.ListData, &baiv1.ListDataRequest{PageSize: 1000, PageToken: token})
			if err != nil {
				return nil, fmt.Errorf("list data: %w", err)
			}
			return res, nil
		}, (*baiv1.ListDataResponse).GetData)
	}
}

// VerifyData makes the platform read the data with that digest, and reports whether they
// are intact. The function read, if not nil, is called about once a second with the bytes
// read and their total. The platform drops damaged data, and fetches them again when a
// run needs them.
func (c *Client) VerifyData(ctx context.Context, sha256 string, read func(done, total int64)) (whole bool, err error) {
	err = c.drain(ctx, func(ctx context.Context, p streamWatchdog) error {
		stream, err := c.data.VerifyData(ctx, &baiv1.VerifyDataRequest{Sha256: sha256})
		if err != nil {
			return err
		}
		return receiveAll(stream.Recv, p, func(res *baiv1.VerifyDataResponse) bool {
			if read != nil {
				read(res.GetDone(), res.GetTotal())
			}
			whole = res.GetVerdict() == baiv1.VerifyDataResponse_VERDICT_WHOLE
			return true
		})
	})
	if err != nil {
		return false, fmt.Errorf("verify %s: %w", sha256, withNotFoundKind("data", err))
	}
	return whole, nil
}

// EvictData removes the data with that digest, and reports whether there were
// any. It is an InvalidError while runs need them.
func (c *Client) EvictData(ctx context.Context, sha256 string) (stored bool, err error) {
	res, err := callWithRetry(ctx, c, c.data.EvictData, &baiv1.EvictDataRequest{Sha256: sha256})
	if err != nil {
		return false, fmt.Errorf("evict %s: %w", sha256, err)
	}
	return res.GetStored(), nil
}

// Wanted is a source that is to be fetched, as a descriptor has it.
type Wanted struct {
	Src    string // URL
	MD5    string // that its bytes must have; may be empty
	SHA256 string // likewise
}

// Prefetch has a source fetched before any run wants it, and returns the name of
// the order without waiting for that.
func (c *Client) Prefetch(ctx context.Context, w Wanted) (name string, err error) {
	res, err := callWithRetry(ctx, c, c.data.PrefetchData, &baiv1.PrefetchDataRequest{Src: w.Src, Md5: w.MD5, Sha256: w.SHA256})
	if err != nil {
		return "", fmt.Errorf("prefetch: %w", err)
	}
	return res.GetPrefetch(), nil
}

// WaitPrefetch returns how a prefetch ended, once it has.
func (c *Client) WaitPrefetch(ctx context.Context, name string) (*baiv1.GetPrefetchResponse, error) {
	return c.FollowPrefetch(ctx, name, func(string) {})
}

// FollowPrefetch is WaitPrefetch, and calls waits with the reason for which a prefetch is
// delayed (a source that is retried, for example) whenever that changes; "" while it
// makes progress.
func (c *Client) FollowPrefetch(ctx context.Context, name string, waits func(why string)) (*baiv1.GetPrefetchResponse, error) {
	lastMessage := ""
	for pause := c.settings.Pause; ; pause = min(2*pause, time.Second) {
		res, err := callWithRetry(ctx, c, c.data.GetPrefetch, &baiv1.GetPrefetchRequest{Prefetch: name})
		if err != nil {
			return nil, fmt.Errorf("look for prefetch %q: %w", name, withNotFoundKind("data", err))
		}
		if res.GetState() != baiv1.GetPrefetchResponse_STATE_FETCHING {
			return res, nil
		}
		if res.GetMessage() != lastMessage {
			lastMessage = res.GetMessage()
			waits(lastMessage)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for prefetch %q: %w", name, context.Cause(ctx))
		}
	}
}
