package wiring_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/test/testbed/s3"
)

func serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/fine":
		_, _ = w.Write([]byte("text"))
	case "/large":
		_, _ = w.Write(make([]byte, parser.MaxSize+1))
	case "/away":
		http.Redirect(w, r, "http://169.254.169.254/secret", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func TestADescriptorIsReadUnderTheGuardsOfDataSets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	for name, tt := range map[string]struct {
		networks  []string
		url, want string
		user      bool
	}{
		"what settings allow":                   {[]string{"loopback"}, server.URL + "/fine", "", true},
		"what is too large":                     {[]string{"loopback"}, server.URL + "/large", "more than the 256 KiB", true},
		"what is not there":                     {[]string{"loopback"}, server.URL + "/none", "404", true},
		"what leads to a place not allowed":     {[]string{"loopback"}, server.URL + "/away", "not public", true},
		"a place that settings do not allow":    {nil, server.URL + "/fine", "not public", true},
		"a file of the server's":                {[]string{"loopback"}, "file:///etc/passwd", "allow no files", true},
		"a folder":                              {nil, "s3://bucket/folder/", "name the file", true},
		"a secret of the URL is not in the way": {nil, "http://user:geheim@127.0.0.1/x?token=geheim", "not public", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := wiring.NewSource(source.Settings{Networks: tt.networks, Folders: []string{"/etc"}}, bucket.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			text, err := s.Read(t.Context(), tt.url)
			var why *catalog.SourceError
			switch {
			case tt.want == "" && (err != nil || string(text) != "text"):
				t.Errorf("read %q, %v", text, err)
			case tt.want != "" && (!errors.As(err, &why) || why.User != tt.user || !strings.Contains(why.Message, tt.want) || strings.Contains(why.Message, "geheim")):
				t.Errorf("read: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestADescriptorIsReadFromABucket(t *testing.T) {
	server := s3.Start(t)
	server.Bucket(t, "team")
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	if err := os.WriteFile(filepath.Join(server.Dir, "team", "nightly.toml"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := wiring.NewSource(source.Settings{Networks: []string{"loopback"}}, bucket.Settings{S3: bucket.S3{Endpoint: server.Endpoint, Region: server.Region}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text, err := s.Read(t.Context(), "s3://team/nightly.toml"); err != nil || string(text) != "text" {
		t.Errorf("read %q, %v", text, err)
	}
	var why *catalog.SourceError
	if _, err := s.Read(t.Context(), "s3://team/none.toml"); !errors.As(err, &why) || !why.User {
		t.Errorf("what is not there: %v", err)
	}
}
