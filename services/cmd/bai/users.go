package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// Users of the embedded broker, and the files with their passwords.
const (
	platformUser, platformPassword = "bai", "broker.password"
	podsUser, podsPassword         = "bai-pods", "pods.password"
)

// brokerUsers returns the users of the embedded broker, and sets the users of this
// platform and its pods in the settings. There are no users while pods of an earlier
// version without users run, since those would lose their broker.
func (p *platform) brokerUsers() ([]broker.User, error) {
	k := &p.settings.Kafka
	_, err := os.Lstat(p.dir.Join(platformPassword))
	if errors.Is(err, fs.ErrNotExist) && p.door == nil && local.Runs(p.dir.Join("pods")) {
		p.log.Warn("benchmarks run that an earlier version started: the embedded broker asks programs of this machine for no password until the next start without them")
		return nil, nil
	}
	key, err := os.ReadFile(k.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the platform's key: %w", err)
	}
	own, pods := passwordOf(key, platformUser), passwordOf(key, podsUser)
	if err := errors.Join(p.dir.KeepPassword(platformPassword, own), p.dir.KeepPassword(podsPassword, pods)); err != nil {
		return nil, err
	}
	k.TLS, k.Pods.TLS = access.TLS{}, access.TLS{}
	k.SASL = access.SASL{Mechanism: access.ScramSHA256, User: platformUser, PasswordFile: p.dir.Join(platformPassword)}
	k.Pods.SASL = access.SASL{Mechanism: access.ScramSHA256, User: podsUser, PasswordFile: p.dir.Join(podsPassword)}
	return []broker.User{{Name: platformUser, Password: own, Superuser: true}, {Name: podsUser, Password: pods, WriteTopics: podsWrite()}},
		nil
}

// podsWrite returns the topics that pods may write to.
func podsWrite() []string {
	var topics []string
	for _, r := range (access.Principals{access.Pods: {"User:" + podsUser}}).ACLs() {
		if r.Resource == "topic" && r.Operation == "Write" {
			topics = append(topics, r.Name)
		}
	}
	return topics
}

// passwordOf returns a user's password. It is derived from the platform's key, so that
// running pods still know it if its file is lost. The key, or another user's password,
// cannot be derived from it.
func passwordOf(key []byte, user string) string {
	mac := hmac.New(sha256.New, append([]byte("password of the embedded broker\x00"), bytes.TrimSpace(key)...))
	mac.Write([]byte(user))
	return hex.EncodeToString(mac.Sum(nil))
}
