package bucket

import (
	"context"
	"errors"
	"net/http"
	"os"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// GS says how buckets of Google's Cloud Storage are reached.
type GS struct {
	Endpoint        string `toml:"endpoint"`         // https://host:port/storage/v1/ of another than Google's
	CredentialsFile string `toml:"credentials_file"` // empty means that the environment is searched
	Anonymous       bool   `toml:"anonymous"`        // no credentials are sent
}

func (s GS) open(ctx context.Context, name string, client *http.Client) (*Bucket, error) {
	authorized, err := s.client(ctx, client)
	if err != nil {
		return nil, err
	}
	with := []option.ClientOption{storage.WithJSONReads()}
	if s.Endpoint != "" {
		with = append(with, option.WithEndpoint(s.Endpoint))
	}
	b, err := gcsblob.OpenBucket(ctx, authorized, name, &gcsblob.Options{ClientOptions: with})
	if err != nil {
		return nil, err
	}
	if api := (*storage.Client)(nil); b.As(&api) {
		api.SetRetry(storage.WithPolicy(storage.RetryNever)) // the reader retries
	}
	return &Bucket{bucket: b, keyAndTag: keyAndTagGS, escapedChars: "\n\r", errorInfo: errorInfoGS}, nil
}

func (s GS) client(ctx context.Context, client *http.Client) (*gcp.HTTPClient, error) {
	if s.Anonymous {
		return &gcp.HTTPClient{Client: *client}, nil
	}
	found, err := s.credentials(ctx)
	if err != nil {
		return nil, err
	}
	authorized, err := gcp.NewHTTPClient(client.Transport, gcp.CredentialsTokenSource(found))
	if err != nil {
		return nil, err
	}
	authorized.CheckRedirect = client.CheckRedirect
	return authorized, nil
}

func (s GS) credentials(ctx context.Context) (*google.Credentials, error) {
	if s.CredentialsFile == "" {
		return gcp.DefaultCredentials(ctx)
	}
	b, err := os.ReadFile(s.CredentialsFile)
	if err != nil {
		return nil, err
	}
	return google.CredentialsFromJSON(ctx, b, storage.ScopeReadOnly) //nolint:staticcheck // the file is the operator's own
}

func keyAndTagGS(as func(any) bool) (key, tag string) {
	var o storage.ObjectAttrs
	_ = as(&o) // it is one of ours
	return o.Name, o.Etag
}

func errorInfoGS(err error) errorInfo {
	if answer := (*googleapi.Error)(nil); errors.As(err, &answer) {
		return errorInfo{status: answer.Code, retryAfter: answer.Header.Get("Retry-After")}
	}
	return errorInfo{}
}
