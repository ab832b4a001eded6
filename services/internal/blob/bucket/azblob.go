package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"
)

// Azblob says how containers of Azure's Blob Storage are reached. They are those
// of one account.
type Azblob struct {
	Account   string `toml:"account"`   // name of the storage account
	Endpoint  string `toml:"endpoint"`  // empty means https://ACCOUNT.blob.core.windows.net
	KeyFile   string `toml:"key_file"`  // of the account; empty means that the environment is searched
	Anonymous bool   `toml:"anonymous"` // no credentials are sent
}

func (s Azblob) open(ctx context.Context, name string, client *http.Client) (*Bucket, error) {
	if s.Account == "" && s.Endpoint == "" {
		return nil, errors.New("settings name no account (buckets.azblob.account)")
	}
	api, err := s.container(name, client)
	if err != nil {
		return nil, err
	}
	b, err := azureblob.OpenBucket(ctx, api, nil)
	if err != nil {
		return nil, err
	}
	return &Bucket{
		bucket: b, keyAndTag: keyAndTagAzblob, escapedChars: control + "\x7f\\\"#%?", setIfMatch: setIfMatchAzblob,
		errorInfo: errorInfoAzblob,
	}, nil
}

func (s Azblob) container(name string, client *http.Client) (*container.Client, error) {
	base := strings.TrimSuffix(s.Endpoint, "/")
	if base == "" {
		base = fmt.Sprintf("https://%s.blob.core.windows.net", s.Account)
	}
	url := base + "/" + name
	with := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}}
	if s.Anonymous {
		return container.NewClientWithNoCredential(url, with)
	}
	if s.KeyFile == "" {
		found, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, err
		}
		return container.NewClient(url, found, with)
	}
	key, err := secret(s.KeyFile)
	if err != nil {
		return nil, err
	}
	shared, err := container.NewSharedKeyCredential(s.Account, key)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(url, shared, with)
}

func keyAndTagAzblob(as func(any) bool) (key, tag string) {
	var o container.BlobItem
	if as(&o) && o.Name != nil {
		key = *o.Name
	}
	if o.Properties != nil && o.Properties.ETag != nil {
		tag = string(*o.Properties.ETag)
	}
	return key, tag
}

func setIfMatchAzblob(as func(any) bool, tag string) {
	var o *azblob.DownloadStreamOptions
	if !as(&o) {
		return
	}
	etag := azcore.ETag(`"` + tag + `"`)
	o.AccessConditions = &azblob.AccessConditions{ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &etag}}
}

func errorInfoAzblob(err error) errorInfo {
	answer := (*azcore.ResponseError)(nil)
	if !errors.As(err, &answer) {
		return errorInfo{}
	}
	t := errorInfo{status: answer.StatusCode, reason: answer.ErrorCode}
	if answer.RawResponse != nil {
		t.retryAfter = answer.RawResponse.Header.Get("Retry-After")
	}
	return t
}
