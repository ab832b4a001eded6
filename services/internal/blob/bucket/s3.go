package bucket

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob/s3blob"
)

// S3 configures the access to buckets of S3 and of compatible servers.
type S3 struct {
	Endpoint      string `toml:"endpoint"`        // https://host:port of another than Amazon's
	Region        string `toml:"region"`          // empty means that of the environment, else us-east-1
	PathStyle     bool   `toml:"path_style"`      // the bucket is a part of the path, not of the host
	AccessKeyFile string `toml:"access_key_file"` // empty means that the environment is searched
	SecretKeyFile string `toml:"secret_key_file"` // with access_key_file
	Anonymous     bool   `toml:"anonymous"`       // no credentials are sent
}

func (s S3) open(ctx context.Context, name string, client *http.Client) (*Bucket, error) {
	api, err := s.client(ctx, func(o *s3.Options) {
		o.HTTPClient = client
		o.Retryer = aws.NopRetryer{} // the reader retries
	})
	if err != nil {
		return nil, err
	}
	b, err := s3blob.OpenBucket(ctx, api, name, nil)
	if err != nil {
		return nil, err
	}
	return &Bucket{bucket: b, keyAndTag: keyAndTagS3, escapedChars: control, setIfMatch: setIfMatchS3, errorInfo: errorInfoS3}, nil
}

func (s S3) client(ctx context.Context, how func(*s3.Options)) (*s3.Client, error) {
	c, err := s.config(ctx)
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(c, how, func(o *s3.Options) {
		o.UsePathStyle = s.PathStyle
		o.DisableLogOutputChecksumValidationSkipped = true
		if s.Endpoint != "" {
			o.BaseEndpoint = aws.String(s.Endpoint)
		}
	}), nil
}

// maxSilence is how long a server may send nothing of an object that is read.
const maxSilence = 2 * time.Minute

// limitSilence limits for how long a server may send nothing: the library has no limit of
// its own for S3. Requests with a large body need another client, as a server says nothing
// until it has the whole body.
func limitSilence(most time.Duration) func(*s3.Options) {
	return func(o *s3.Options) {
		if c, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = c.WithReadTimeout(most)
		}
	}
}

// config returns the configuration of the environment and the settings.
func (s S3) config(ctx context.Context) (aws.Config, error) {
	var with []func(*config.LoadOptions) error
	switch {
	case s.Anonymous:
		with = append(with, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	case s.AccessKeyFile != "":
		id, err := secret(s.AccessKeyFile)
		if err != nil {
			return aws.Config{}, err
		}
		key, err := secret(s.SecretKeyFile)
		if err != nil {
			return aws.Config{}, err
		}
		with = append(with, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(id, key, "")))
	}
	if s.Region != "" {
		with = append(with, config.WithRegion(s.Region))
	}
	c, err := config.LoadDefaultConfig(ctx, with...)
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	return c, err
}

func keyAndTagS3(as func(any) bool) (key, tag string) {
	var o types.Object
	_ = as(&o) // it is one of ours
	return aws.ToString(o.Key), aws.ToString(o.ETag)
}

func setIfMatchS3(as func(any) bool, tag string) {
	var in *s3.GetObjectInput
	if as(&in) {
		in.IfMatch = aws.String(`"` + tag + `"`)
	}
}

func errorInfoS3(err error) errorInfo {
	var t errorInfo
	if api := smithy.APIError(nil); errors.As(err, &api) {
		t.reason = api.ErrorCode()
		switch t.reason {
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
			"AccountProblem", "XAdminUserNotFound":
			t.status = http.StatusForbidden
			return t
		}
	}
	if answer := (*smithyhttp.ResponseError)(nil); errors.As(err, &answer) {
		t.status = answer.HTTPStatusCode()
		if answer.Response != nil && answer.Response.Response != nil {
			t.retryAfter = answer.Response.Header.Get("Retry-After")
		}
	}
	return t
}
