package source

import (
	"context"
	"net/http"
)

// Buckets opens buckets of type B.
type Buckets[B Bucket] interface {
	// Open opens the bucket with a scheme and a name.
	Open(ctx context.Context, scheme, name string, client *http.Client) (B, error)
}

// OpenBuckets returns an OpenBucket that uses o.
func OpenBuckets[B Bucket](o Buckets[B]) OpenBucket {
	return func(ctx context.Context, scheme, name string, client *http.Client) (Bucket, error) {
		b, err := o.Open(ctx, scheme, name, client)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Repositories opens repositories of type R.
type Repositories[R Repository] interface {
	// Open resolves a reference of the repository at a URL.
	Open(ctx context.Context, url, ref, token string, client *http.Client) (R, error)
}

// OpenRepositories returns an OpenRepository that uses o.
func OpenRepositories[R Repository](o Repositories[R]) OpenRepository {
	return func(ctx context.Context, url, ref, token string, client *http.Client) (Repository, error) {
		r, err := o.Open(ctx, url, ref, token, client)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}
