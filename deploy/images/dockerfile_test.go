package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stages returns the instructions of each stage of the Dockerfile, the last one by the name "".
func stages(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if words[0] == "FROM" {
			if name = ""; len(words) == 4 && words[2] == "AS" {
				name = words[3]
			}
		}
		all[name] = append(all[name], strings.Join(words, " "))
	}
	return all
}

func TestTheDockerfilesImagesTrustTheAuthoritiesOfTheWeb(t *testing.T) {
	const authorities = "COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/"
	all := stages(t)
	for _, name := range []string{"pod", ""} {
		if !slices.Contains(all[name], authorities) {
			t.Errorf("stage %q has %q, want %s among them", name, all[name], authorities)
		}
	}
}

// programsOf returns the files that the stage programs makes for a service, which runs in a
// folder of the test.
func programsOf(t *testing.T, service string) []string {
	t.Helper()
	lines := stages(t)["programs"]
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "RUN ") })
	if i < 0 {
		t.Fatal("the stage programs runs nothing")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, program := range slices.Concat(slices.Collect(maps.Values(ours()))...) {
		if err := os.WriteFile(filepath.Join(dir, "out", program), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.NewReplacer("/out", dir+"/out", "/image", dir+"/image").Replace(strings.TrimPrefix(lines[i], "RUN "))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append(os.Environ(), "SERVICE="+service)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", service, err, out)
	}
	return slices.Sorted(maps.Keys(tree(t, filepath.Join(dir, "image"))))
}

func TestTheDockerfilesImagesHaveTheProgramsOfOurs(t *testing.T) {
	for name, programs := range ours() {
		want := []string{"/service"}
		for _, other := range programs[1:] {
			want = append(want, "/"+other)
		}
		slices.Sort(want)
		if name == "bai-pod" { // the stage pod makes it
			continue
		}
		if got := programsOf(t, name); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}
