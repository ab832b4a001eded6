package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Bounds of all that is asked about one image.
const (
	maxBytes           = 16 << 20 // of answers
	maxRequests        = 32       // requests, redirects among them
	maxEntrypointBytes = 64 << 10 // bytes of an entrypoint and its arguments
)

// platformOf is the platform of the settings, or arch's if they name no architecture.
func platformOf(settings, arch string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(cmp.Or(settings, "linux/amd64"))
	if err != nil || p.OS == "" || p.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("registry.platform: %q is not OS/ARCH, as linux/arm64", settings)
	}
	if arch != "" && arch != p.Architecture {
		p.Architecture, p.Variant = arch, ""
	}
	return *p, nil
}

// parseConfig reads the entrypoint of an image from its configuration.
func parseConfig(text []byte) (cluster.Image, error) {
	var c struct {
		Config struct{ Entrypoint, Cmd []string } `json:"config"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return cluster.Image{}, errors.New("the image's configuration cannot be read")
	}
	words, size := slices.Concat(c.Config.Entrypoint, c.Config.Cmd), 0
	for _, w := range words {
		size += len(w)
		if strings.ContainsRune(w, 0) {
			return cluster.Image{}, errors.New("the image's entrypoint holds a zero byte, with which no program can be started")
		}
	}
	switch {
	case len(words) == 0 || words[0] == "":
		return cluster.Image{}, errors.New("the image has neither an entrypoint nor a command")
	case size > maxEntrypointBytes:
		return cluster.Image{}, fmt.Errorf("the image's entrypoint has more than %d KiB", maxEntrypointBytes>>10)
	}
	return cluster.Image{Entrypoint: c.Config.Entrypoint, Cmd: c.Config.Cmd}, nil
}

// loginsOf returns the logins of a pull secret for a repository of a registry, the
// longest path first.
func loginsOf(secret map[string][]byte, host, repository string) ([]authn.AuthConfig, error) {
	var auths map[string]json.RawMessage
	var config struct {
		Auths *map[string]json.RawMessage `json:"auths"`
	}
	config.Auths = &auths
	var into any = &config
	text, ok := secret[".dockerconfigjson"]
	if !ok {
		text, ok, into = secret[".dockercfg"], secret[".dockercfg"] != nil, &auths
	}
	if !ok {
		return nil, errors.New("it has neither the key .dockerconfigjson nor .dockercfg")
	}
	if json.Unmarshal(bytes.TrimSpace(text), into) != nil { // its message could quote the secret
		return nil, errors.New("it is not JSON as docker login writes it")
	}
	keys := slices.SortedFunc(maps.Keys(auths), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	var logins []authn.AuthConfig
	for _, key := range keys {
		if !loginMatches(key, host, repository) {
			continue
		}
		var login authn.AuthConfig
		if json.Unmarshal(auths[key], &login) != nil {
			return nil, fmt.Errorf("its login for %s cannot be read", host)
		}
		logins = append(logins, login)
	}
	return logins, nil
}

// loginMatches reports whether a login's key names a repository of a registry: by its
// host, in which * stands for a part, and the beginning of its path.
func loginMatches(key, host, repository string) bool {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	pattern, folder, _ := strings.Cut(key, "/")
	folder = strings.Trim(folder, "/")
	if folder == "v1" || folder == "v2" { // of the API, not of a repository
		folder = ""
	}
	if pattern == "docker.io" || pattern == "registry-1.docker.io" {
		pattern = name.DefaultRegistry
	}
	parts, have := strings.Split(strings.ToLower(pattern), "."), strings.Split(strings.ToLower(host), ".")
	if len(parts) != len(have) {
		return false
	}
	for i, part := range parts {
		if ok, err := path.Match(part, have[i]); err != nil || !ok {
			return false
		}
	}
	return folder == "" || repository == folder || strings.HasPrefix(repository, folder+"/")
}
