package post

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// minKey is the least length of a key in the specification Standard Webhooks.
const minKey = 24

// Key returns the key in a file, with which requests are signed: 24 bytes or more, as they are, or whsec_ and base64.
func Key(path string) ([]byte, error) {
	text, err := Secret(path)
	if err != nil {
		return nil, err
	}
	key := []byte(text)
	if coded, ok := strings.CutPrefix(text, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, fmt.Errorf("read the secret of the webhook: after whsec_ there is no base64 in %s", path)
		}
	}
	if len(key) < minKey {
		return nil, fmt.Errorf("read the secret of the webhook: %s has %d bytes, want %d or more (head -c 32 /dev/urandom | base64 makes one)", path, len(key), minKey)
	}
	return key, nil
}

// Signed returns the headers of a request that is sent at now, signed as version 1 of the specification Standard Webhooks says. A receiver
// recognizes a repeated request by its ID.
func Signed(key []byte, id string, now time.Time, body []byte) map[string]string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return map[string]string{
		"Webhook-Id": id, "Webhook-Timestamp": at, "Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
}
