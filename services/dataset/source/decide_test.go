package source_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
)

func TestCheck(t *testing.T) {
	inside := source.Settings{Networks: []string{"loopback", "10.1.0.0/16"}, Folders: []string{"/srv/data/", "/srv/more"}}
	only := source.Settings{Hosts: []string{"example.com", "*.data.example.com"}}
	tests := map[string]struct {
		settings source.Settings
		source   string
		want     string // part of the refusal; empty if the source may be read
	}{
		"what is public may be read":                          {source: "https://example.com/cats.tar"},
		"an address that is public may be read":               {source: "http://93.184.216.34/cats.tar"},
		"a port of the user's choice may be read":             {source: "http://example.com:8080/cats.tar"},
		"a scheme in capitals is the same scheme":             {source: "HTTP://example.com/cats.tar"},
		"another scheme is refused":                           {source: "ftp://example.com/cats.tar", want: `scheme "ftp" is not one of http, https, file`},
		"a scheme that reaches programs is refused":           {source: "gopher://example.com/_x", want: `scheme "gopher"`},
		"data in the URL is refused":                          {source: "data:text/plain,x", want: `scheme "data"`},
		"a path is refused":                                   {source: "/etc/passwd", want: "has no scheme"},
		"nothing is refused":                                  {source: "", want: "has no scheme"},
		"what is no URL is refused":                           {source: "http://exa mple.com/%zz", want: "is not a URL"},
		"a control character is refused":                      {source: "http://example.com/\n", want: "is not a URL"},
		"no host is refused":                                  {source: "http:///cats.tar", want: "names no host"},
		"no slashes are refused":                              {source: "http:example.com", want: "names no host"},
		"loopback is refused":                                 {source: "http://127.0.0.1/x", want: "address 127.0.0.1 is not public"},
		"all of loopback is refused":                          {source: "http://127.8.8.8/x", want: "address 127.8.8.8 is not public"},
		"loopback of IPv6 is refused":                         {source: "http://[::1]/x", want: "address ::1 is not public"},
		"no address is refused":                               {source: "http://0.0.0.0/x", want: "is not public"},
		"no address of IPv6 is refused":                       {source: "http://[::]/x", want: "is not public"},
		"a private address is refused":                        {source: "http://10.0.0.1/x", want: "is not public"},
		"another private address is refused":                  {source: "http://172.16.5.4/x", want: "is not public"},
		"a third private address is refused":                  {source: "http://192.168.1.1/x", want: "is not public"},
		"a carrier's address is refused":                      {source: "http://100.64.0.1/x", want: "is not public"},
		"the cloud's metadata are refused":                    {source: "http://169.254.169.254/latest/meta-data", want: "is not public"},
		"link-local of IPv6 is refused":                       {source: "http://[fe80::1%25eth0]/x", want: "is not public"},
		"the cloud's metadata of IPv6 are refused":            {source: "http://[fd00:ec2::254]/x", want: "is not public"},
		"multicast is refused":                                {source: "http://224.0.0.1/x", want: "is not public"},
		"broadcast is refused":                                {source: "http://255.255.255.255/x", want: "is not public"},
		"loopback in clothes of IPv6 is refused":              {source: "http://[::ffff:127.0.0.1]/x", want: "is not public"},
		"a private address behind NAT64 is refused":           {source: "http://[64:ff9b::a00:1]/x", want: "is not public"},
		"a private address behind 6to4 is refused":            {source: "http://[2002:a00:1::1]/x", want: "is not public"},
		"loopback that settings allow may be read":            {settings: inside, source: "http://127.0.0.1:7070/x"},
		"loopback of IPv6 that settings allow may be read":    {settings: inside, source: "http://[::1]:7070/x"},
		"a network that settings allow may be read":           {settings: inside, source: "http://10.1.2.3/x"},
		"its neighbour is refused":                            {settings: inside, source: "http://10.2.2.3/x", want: "is not public"},
		"a host that settings name may be read":               {settings: only, source: "https://Example.com/x"},
		"a host with its dot is the same host":                {settings: only, source: "https://example.com./x"},
		"a host below one that settings name may be read":     {settings: only, source: "https://eu.data.example.com/x"},
		"that one itself is refused":                          {settings: only, source: "https://data.example.com/x", want: `host "data.example.com" is not one`},
		"a host that settings do not name is refused":         {settings: only, source: "https://example.org/x", want: `host "example.org" is not one`},
		"a host that only ends like it is refused":            {settings: only, source: "https://evildata.example.com/x", want: "is not one"},
		"the user of a URL is no host":                        {settings: only, source: "https://example.com@evil.org/x", want: `host "evil.org"`},
		"a backslash is no way around":                        {settings: only, source: `https://example.com\@evil.org/x`, want: "is not"},
		"a file is refused where settings allow none":         {source: "file:///srv/data/x", want: "allow no files"},
		"a file below a folder that is allowed may be read":   {settings: inside, source: "file:///srv/data/a/x"},
		"localhost is this host":                              {settings: inside, source: "file://localhost/srv/more/x"},
		"a file of another host is refused":                   {settings: inside, source: "file://nas/srv/data/x", want: `another host ("nas")`},
		"a relative file is refused":                          {settings: inside, source: "file:srv/data/x", want: "does not name an absolute path"},
		"a file elsewhere is refused":                         {settings: inside, source: "file:///etc/passwd", want: "lies in no folder"},
		"a way up is followed before it is checked":           {settings: inside, source: "file:///srv/data/../../etc/passwd", want: "lies in no folder"},
		"an encoded way up is followed before it is checked":  {settings: inside, source: "file:///srv/data/%2e%2e/%2e%2e/etc/passwd", want: "lies in no folder"},
		"a folder that begins alike is another folder":        {settings: inside, source: "file:///srv/database/x", want: "lies in no folder"},
		"the folder itself is refused":                        {settings: inside, source: "file:///srv/data", want: "lies in no folder"},
		"a refusal shows no password":                         {source: "http://me:hunter2@127.0.0.1/x", want: "source http://127.0.0.1/x:"},
		"a user and a password are refused":                   {source: "https://me:hunter2@example.com/x", want: "source https://example.com/x names a user or a password"},
		"a user alone is, too":                                {source: "https://ghp_hunter2@example.com/x", want: "source https://example.com/x names a user or a password"},
		"also where a file has one":                           {settings: inside, source: "file://me:hunter2@localhost/srv/data/x", want: "names a user or a password"},
		"a refusal shows no token":                            {source: "http://127.0.0.1/x?v=2&X-Amz-Signature=abc", want: "http://127.0.0.1/x?v=2&X-Amz-Signature=REDACTED:"},
		"a refusal of what is no URL shows no password":       {source: "http://me:hunter2@exa mple.com/%zz?token=abc", want: `source "…@exa mple.com/%zz" is not a URL`},
		"an address in other words is left to the connection": {source: "http://2130706433/x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := reader(t, tt.settings).Check(tt.source)
			if tt.want != "" {
				refuses(t, err, tt.want)
				return
			}
			if err != nil {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

func refuses(t *testing.T, err error, want string) {
	t.Helper()
	refusal := new(source.Error)
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, want) {
		t.Fatalf("Check: %v, want %q in it", err, want)
	}
	if refusal.Reason != event.SourceRefused || refusal.Class != event.ClassUser {
		t.Errorf("refused as %s, %s", refusal.Reason, refusal.Class)
	}
}

func TestAHostIsOneHoweverItIsWritten(t *testing.T) {
	for raw, want := range map[string]string{
		"https://Example.COM/x":        "example.com",
		"https://example.com.:443/x":   "example.com",
		"http://example.com:80/x":      "example.com",
		"http://example.com:443/x":     "example.com:443",
		"https://example.com:8443/x":   "example.com:8443",
		"http://[2001:DB8::1]:80/x":    "2001:db8::1",
		"http://me:pw@example.com:80/": "example.com",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := source.HostOf(u); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	for name, tt := range map[string]struct{ source, want string }{
		"nothing to hide":             {"https://example.com/a/b?page=2&v=1", "https://example.com/a/b?page=2&v=1"},
		"user and password":           {"https://me:pw@example.com/x", "https://example.com/x"},
		"a user that is a token":      {"https://ghp_abc@example.com/x", "https://example.com/x"},
		"an access token":             {"https://example.com/x?access_token=abc", "https://example.com/x?access_token=REDACTED"},
		"a presigned URL of S3":       {"https://b.s3.aws/x?X-Amz-Credential=AK&X-Amz-Date=1&X-Amz-Signature=f0", "https://b.s3.aws/x?X-Amz-Credential=REDACTED&X-Amz-Date=1&X-Amz-Signature=REDACTED"},
		"a shared access signature":   {"https://a.blob/x?sv=1&sig=f%2F0", "https://a.blob/x?sv=1&sig=REDACTED"},
		"a fragment":                  {"https://example.com/x#token=1", "https://example.com/x"},
		"what is not a URL":           {"http://a b/%zz?key=1", "http://a b/%zz"},
		"what is not a URL, but begs": {"http://me:pw@a b/%zz?key=1", "…@a b/%zz"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := source.Redact(tt.source); got != tt.want {
				t.Errorf("Redact: %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzNothingSecretIsShown(f *testing.F) {
	for _, rest := range []string{"example.com/x", "[::1]:80/?q=1#f", "a b/%zz?k=1", "@@", "\\evil", "%31/../..", "?a@b"} {
		f.Add(rest)
	}
	r, err := source.New(source.Settings{Networks: []string{"loopback"}, Folders: []string{"/srv"}})
	if err != nil {
		f.Fatal(err)
	}
	r.ReadBuckets(func(context.Context, string, string, *http.Client) (source.Bucket, error) {
		return nil, errors.ErrUnsupported
	})
	r.ReadRepositories(func(context.Context, string, string, string, *http.Client) (source.Repository, error) {
		return nil, errors.ErrUnsupported
	})
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(rest, "hunter2") {
			return
		}
		url := "http://me:hunter2@" + rest
		err := r.Check(url)
		if own := new(source.Error); err != nil && !errors.As(err, &own) {
			t.Errorf("Check(%q): %v", url, err)
		}
		if shown := fmt.Sprint(source.Redact(url), err); strings.Contains(shown, "hunter2") {
			t.Errorf("%q is shown as %s", url, shown)
		}
		for _, scheme := range []string{"s3://", "gs://", "git+https://", "file://", ""} {
			url := scheme + "me:hunter2@" + rest
			if shown := fmt.Sprint(r.Check(url)); strings.Contains(shown, "hunter2@") {
				t.Errorf("%q is shown as %s", url, shown)
			}
			_ = r.Check(scheme + rest) // whatever the result, it must not panic
		}
	})
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings source.Settings
		want     string
	}{
		"a relative folder":    {source.Settings{Folders: []string{"data"}}, `sources.folders: "data" is not absolute`},
		"a host with a star":   {source.Settings{Hosts: []string{"a*.example.com"}}, `sources.hosts: "a*.example.com" is neither a host, as example.com, nor all below one, as *.example.com`},
		"no host":              {source.Settings{Hosts: []string{""}}, `sources.hosts: "" is neither`},
		"no network":           {source.Settings{Networks: []string{"private"}}, `sources.networks: "private" is neither a network, as 10.0.0.0/8, nor loopback`},
		"a negative number":    {source.Settings{Stall: -1}, "sources.stall: must not be negative"},
		"all faults at once 1": {source.Settings{MaxSize: -1, Folders: []string{"x"}}, "sources.max_size: must not be negative"},
		"all faults at once 2": {source.Settings{MaxSize: -1, Folders: []string{"x"}}, `sources.folders: "x" is not absolute`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.settings.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate: %v, want %s", err, tt.want)
			}
			if _, err := source.New(tt.settings); err == nil {
				t.Error("New took them")
			}
		})
	}
}

func reader(t *testing.T, s source.Settings) *source.Reader {
	t.Helper()
	r, err := source.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}
