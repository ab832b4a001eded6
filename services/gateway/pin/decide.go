// Package pin holds the repetition of a run to what the run had. It is pure.
package pin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Overrides returns what names the image and the data of a run by the digests that it had, in its
// descriptor, and what of it may be different all the same. A descriptor that is invalid has
// neither: its submission says why.
func Overrides(run store.Run) (set []event.Override, gaps []string) {
	d, _ := parser.Parser{Accepted: true}.Parse(run.File, []byte(run.Descriptor))
	if d == nil {
		return nil, nil
	}
	image, gaps := pinnedImage(d, run.Images)
	data, more := pinnedData(d, run.Data)
	set = append(image, data...)
	if len(set) > parser.MaxOverrides {
		return set, []string{fmt.Sprintf("it has more than %d data sets", parser.MaxOverrides)}
	}
	return set, append(gaps, more...)
}

// pinnedImage names the image of a descriptor by the digest that ran.
func pinnedImage(d *descriptors.Descriptor, images map[string]string) (set []event.Override, gaps []string) {
	name := d.Env.DockerImage
	if strings.Contains(name, "@sha256:") {
		return nil, nil
	}
	digests := slices.Compact(slices.Sorted(maps.Values(images)))
	switch {
	case len(d.Images()) > 1:
		return nil, []string{"it has several images that are named by tags"}
	case slices.Equal(digests, []string{event.NoImage}):
		return nil, []string{"the programs of a machine ran, not those of an image"}
	case len(digests) != 1 || !strings.HasPrefix(digests[0], "sha256:"):
		return nil, []string{fmt.Sprintf("image %s is named by a tag, and the digest that ran is not known", name)}
	}
	return []event.Override{{Path: "env.docker_image", Value: strconv.Quote(untagged(name) + "@" + digests[0])}}, nil
}

// untagged returns the name of an image without its tag. A colon before the last slash is that of a port.
func untagged(name string) string {
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[:i]
	}
	return name
}

// pinnedData holds each file of a descriptor to the content that was fetched.
func pinnedData(d *descriptors.Descriptor, fetched []event.Data) (set []event.Override, gaps []string) {
	lists := map[string][]descriptors.Source{"data.sources": d.Data.Sources}
	if d.Server != nil {
		lists["server.models"] = d.Server.Models
	}
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		for n, s := range lists[key] {
			if s.SHA256 != "" || s.MD5 != "" {
				continue
			}
			digest, why := contentOf(s, fetched)
			if why != "" {
				gaps = append(gaps, why)
				continue
			}
			set = append(set, event.Override{Path: fmt.Sprintf("%s.%d.sha256", key, n), Value: strconv.Quote(digest)})
		}
	}
	return set, gaps
}

// contentOf returns the digest of the content that was fetched for a source, or why it is not known. The digest of a folder is that of its
// archive, to which no descriptor can hold it.
func contentOf(s descriptors.Source, fetched []event.Data) (digest, why string) {
	for _, d := range fetched {
		if d.Path != s.Path || d.SHA256 == "" {
			continue
		}
		if d.Unpack != s.Unpack {
			return "", fmt.Sprintf("the folder at %s may have other files by now", s.Path)
		}
		if digest != "" && digest != d.SHA256 {
			return "", fmt.Sprintf("several data sets lie at %s", s.Path)
		}
		digest = d.SHA256
	}
	if digest == "" {
		return "", fmt.Sprintf("it is not known which data lay at %s", s.Path)
	}
	return digest, ""
}
