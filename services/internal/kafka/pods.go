package kafka

import (
	"errors"
	"fmt"
	"os"

	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// CheckKey returns an error if services could not verify which run a message of a pod belongs to.
func (s Settings) CheckKey() error {
	if s.KeyFile == "" && len(s.Key) == 0 {
		return errors.New("kafka.key_file: is needed: without the platform's key nobody can tell which run a pod may speak for. Make one with 'openssl rand -hex 32', and give all services the same")
	}
	return nil
}

// CheckPods returns why pods could not write: if services have a user, pods need one too, and another.
func (s Settings) CheckPods() error {
	if s.SASL.Mechanism != "" && s.Pods.SASL.Mechanism == "" {
		return errors.New("kafka.pods.sasl: pods need a user of their own, who may write bai.status, bai.metrics and bai.logs only: 'bai admin topics plan' shows its rights")
	}
	return nil
}

// ForPods returns how pods write to the brokers, with the contents of the files
// that Pods names, for the Secret of a pod.
func (s Settings) ForPods() (pod.Access, error) {
	tls, sasl := s.Pods.TLS, s.Pods.SASL
	out := pod.Access{
		TLS: tls.IsEnabled(), CA: tls.CA, ServerName: tls.ServerName, Mechanism: sasl.Mechanism,
		User: sasl.User, Compression: s.Compression,
	}
	if tls.CAFile != "" {
		pem, err := os.ReadFile(tls.CAFile)
		if err != nil {
			return pod.Access{}, fmt.Errorf("read whom the brokers' certificates are signed by, for pods: %w", err)
		}
		out.CA = string(pem)
	}
	if sasl.Mechanism != "" {
		var err error
		if out.Password, err = sasl.Secret(); err != nil {
			return pod.Access{}, fmt.Errorf("for pods: %w", err)
		}
	}
	return out, nil
}

// InPod returns the settings of a pod that writes as source of the run of token.
func InPod(brokers []string, a pod.Access, token, source string) Settings {
	return Settings{
		Brokers: brokers, Token: token, Source: source, Compression: a.Compression,
		Access: access.Access{
			TLS:  access.TLS{Enabled: a.TLS, CA: a.CA, ServerName: a.ServerName},
			SASL: access.SASL{Mechanism: a.Mechanism, User: a.User, Password: a.Password},
		},
	}
}
