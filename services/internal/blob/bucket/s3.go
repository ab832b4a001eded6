package bucket

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob/s3blob"
)

// S3 says how buckets of S3, or of what speaks like it, are reached.
type S3 struct {
	Endpoint      string `toml:"endpoint"`        // https://host:port of another than Amazon's
	Region        string `toml:"region"`          // empty means what the environment says, else us-east-1
	PathStyle     bool   `toml:"path_style"`      // the bucket is a part of the path, not of the host
	AccessKeyFile string `toml:"access_key_file"` // empty means that the environment is searched
	SecretKeyFile string `toml:"secret_key_file"`
	Anonymous     bool   `toml:"anonymous"` // no credentials are sent
}

func (s S3) open(ctx context.Context, name string, client *http.Client) (*Bucket, error) {
	c, err := s.config(ctx)
	if err != nil {
		return nil, err
	}
	api := s3.NewFromConfig(c, func(o *s3.Options) {
		o.HTTPClient = client
		o.UsePathStyle = s.PathStyle
		o.Retryer = aws.NopRetryer{} // who reads tries again
		o.DisableLogOutputChecksumValidationSkipped = true
		if s.Endpoint != "" {
			o.BaseEndpoint = aws.String(s.Endpoint)
		}
	})
	b, err := s3blob.OpenBucket(ctx, api, name, nil)
	if err != nil {
		return nil, err
	}
	return &Bucket{bucket: b, tag: tagS3, match: matchS3, status: statusS3}, nil
}

// config returns what the environment and the settings say.
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

func tagS3(as func(any) bool) string {
	var o types.Object
	if !as(&o) {
		return ""
	}
	return aws.ToString(o.ETag)
}

func matchS3(as func(any) bool, tag string) {
	var in *s3.GetObjectInput
	if as(&in) {
		in.IfMatch = aws.String(`"` + tag + `"`)
	}
}

func statusS3(err error) (int, string) {
	why := ""
	if api := smithy.APIError(nil); errors.As(err, &api) {
		why = api.ErrorCode()
		switch why {
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AccountProblem", "XAdminUserNotFound":
			return http.StatusForbidden, why
		}
	}
	if answer := (*smithyhttp.ResponseError)(nil); errors.As(err, &answer) {
		return answer.HTTPStatusCode(), why
	}
	return 0, why
}
