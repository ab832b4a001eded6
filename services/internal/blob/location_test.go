package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	s3bed "github.com/benchmark-ai/bai/services/test/testbed/s3"
)

// openLocation opens the place at a URL, which is in a bucket of the server unless that is nil.
func openLocation(t *testing.T, url string, server *s3bed.Server) *blob.Location {
	t.Helper()
	var opener blob.BucketOpener
	if server != nil {
		dir := t.TempDir()
		id, key := filepath.Join(dir, "id"), filepath.Join(dir, "key")
		if err := errors.Join(os.WriteFile(id, []byte(server.AccessKey), 0o600), os.WriteFile(key, []byte(server.SecretKey), 0o600)); err != nil {
			t.Fatal(err)
		}
		clouds, err := bucket.New(bucket.Settings{
			S3: bucket.S3{Endpoint: server.Endpoint, Region: server.Region, PathStyle: true, AccessKeyFile: id, SecretKeyFile: key},
		})
		if err != nil {
			t.Fatal(err)
		}
		opener = clouds
	}
	p, err := blob.OpenLocation(t.Context(), url, opener, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAPlaceHasAnObjectOnceAndWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lake")
	t.Run("folder", func(t *testing.T) {
		testLocation(t, func(t *testing.T) *blob.Location { t.Helper(); return openLocation(t, blob.FolderURL(dir), nil) })
		names, err := filepath.Glob(filepath.Join(dir, "*")) // hidden names too
		if err != nil || len(names) != 2 {
			t.Errorf("%q, %v", names, err)
		}
	})
	t.Run("bucket", func(t *testing.T) {
		server := s3bed.Start(t)
		server.Bucket(t, "team")
		testLocation(t, func(t *testing.T) *blob.Location { t.Helper(); return openLocation(t, "s3://team/lake", server) })
	})
}

// testLocation writes one object by eight writers at a time, and finds that no later writer is asked for its bytes.
func testLocation(t *testing.T, open func(t *testing.T) *blob.Location) {
	t.Helper()
	failed := errors.New("no more rows")
	err := open(t).PutOnce(t.Context(), "r1.csv", func(w io.Writer) error {
		_, err := w.Write(make([]byte, 6<<20))
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) {
		t.Fatalf("got %v, want %v", err, failed)
	}
	for _, run := range []string{"r1", "r2"} {
		var all sync.WaitGroup
		for range 8 {
			p := open(t)
			all.Go(func() {
				if err := p.PutOnce(t.Context(), run+".csv", fill(run)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		err := open(t).PutOnce(t.Context(), run+".csv", func(io.Writer) error { return errors.New("written again") })
		if err != nil {
			t.Error(err)
		}
	}
}

func fill(run string) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte(run+"\n"), 10_000))
		return err
	}
}

func TestAPlaceTakesNoNameOutsideIt(t *testing.T) {
	p := openLocation(t, blob.FolderURL(t.TempDir()), nil)
	for _, name := range []string{"", "../r1", ".r1", "a/b", `a\b`, "a\x00"} {
		if err := p.PutOnce(t.Context(), name, fill("r1")); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestAPlaceIsAFolderOrABucket(t *testing.T) {
	for url, good := range map[string]bool{
		"file:///srv/lake": true, "s3://team/lake": true, "s3://team": true, "file://host/lake": false, "lake": false, "mem://": false,
		"s3://team/lake?endpoint=x": false, "": false,
	} {
		t.Run(fmt.Sprintf("%q", url), func(t *testing.T) {
			if err := blob.CheckLocation(url); (err == nil) != good {
				t.Errorf("got %v", err)
			}
		})
	}
}
