package suggest_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
)

func TestTheNearestWordIsFound(t *testing.T) {
	words := []string{"docker_image", "path", "md5", "single_node", "env", "Equal"}
	tests := map[string]struct{ word, want string }{
		"a letter too few":                {"docker_imag", "docker_image"},
		"a letter too many":               {"docker_immage", "docker_image"},
		"two letters swapped":             {"ptah", "path"},
		"hyphens for underscores":         {"docker-image", "docker_image"},
		"no separator":                    {"dockerimage", "docker_image"},
		"upper case":                      {"MD5", "md5"},
		"three letters in a long word":    {"sinlge_nod", "single_node"},
		"two letters in a short word":     {"nve", ""},
		"one letter in a short word":      {"end", "env"},
		"another word":                    {"description", ""},
		"an empty word":                   {"", ""},
		"a word longer than any of ours":  {strings.Repeat("docker_image", 100), ""},
		"a case that the candidate has":   {"equal", "Equal"},
		"letters that are not of English": {"päth", "path"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := suggest.Find(tt.word, words); got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}
