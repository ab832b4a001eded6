package fetcher

import (
	"context"
	"net/http"

	"github.com/benchmark-ai/bai/services/fetcher/source"
)

// Buckets opens buckets that are of some type B.
type Buckets[B source.Bucket] interface {
	// Open opens the bucket of a scheme and a name.
	Open(ctx context.Context, scheme, name string, client *http.Client) (B, error)
}

// OpenBuckets returns how o opens buckets.
func OpenBuckets[B source.Bucket](o Buckets[B]) source.OpenBucket {
	return func(ctx context.Context, scheme, name string, client *http.Client) (source.Bucket, error) {
		b, err := o.Open(ctx, scheme, name, client)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Repositories opens repositories that are of some type R.
type Repositories[R source.Repository] interface {
	// Open asks the repository at a URL what a reference stands for.
	Open(ctx context.Context, url, ref, token string, client *http.Client) (R, error)
}

// OpenRepositories returns how o opens repositories.
func OpenRepositories[R source.Repository](o Repositories[R]) source.OpenRepository {
	return func(ctx context.Context, url, ref, token string, client *http.Client) (source.Repository, error) {
		r, err := o.Open(ctx, url, ref, token, client)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}
