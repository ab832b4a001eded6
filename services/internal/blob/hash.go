package blob

import (
	"crypto/md5" //nolint:gosec // a user may know nothing better of a data set
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// parallelHashMin is the size below which it does not pay to sum beside writing.
const parallelHashMin = 64 << 10

// hashingWriter hashes the bytes that it passes on, each piece while that piece is
// written.
type hashingWriter struct {
	to     io.Writer
	sha256 hash.Hash
	md5    hash.Hash // nil if not asked for
	size   int64
}

func newHashingWriter(to io.Writer, withMD5 bool) *hashingWriter {
	s := &hashingWriter{to: to, sha256: sha256.New()}
	if withMD5 {
		s.md5 = md5.New() //nolint:gosec // see the import
	}
	return s
}

// Write implements io.Writer. After an error the sums are of no use.
func (s *hashingWriter) Write(p []byte) (int, error) {
	if len(p) < parallelHashMin {
		s.add(p)
		n, err := s.to.Write(p)
		s.size += int64(n)
		return n, err
	}
	hashed := make(chan struct{})
	go func() {
		defer close(hashed)
		s.add(p)
	}()
	n, err := s.to.Write(p)
	<-hashed
	s.size += int64(n)
	return n, err
}

func (s *hashingWriter) add(p []byte) {
	_, _ = s.sha256.Write(p) // a hash never fails
	if s.md5 != nil {
		_, _ = s.md5.Write(p)
	}
}

func (s *hashingWriter) object() store.Object {
	o := store.Object{Size: s.size, SHA256: hex.EncodeToString(s.sha256.Sum(nil))}
	if s.md5 != nil {
		o.MD5 = hex.EncodeToString(s.md5.Sum(nil))
	}
	return o
}
