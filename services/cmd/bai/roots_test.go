package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// TestTheAuthoritiesOfTheWebAreTrustedOnAMachineThatHasNone runs itself again without the
// certificates of this machine.
func TestTheAuthoritiesOfTheWebAreTrustedOnAMachineThatHasNone(t *testing.T) {
	const without = "BAI_TEST_WITHOUT_AUTHORITIES"
	if os.Getenv(without) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$") //nolint:gosec // this test
		cmd.Env = append(os.Environ(), without+"=1", "SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if pool, err := x509.SystemCertPool(); err != nil || pool.Equal(x509.NewCertPool()) {
		t.Errorf("no authority is trusted: %v", err)
	}
}
