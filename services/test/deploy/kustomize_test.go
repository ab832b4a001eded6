package deploy_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
)

// overlay writes a kustomization of a folder of deploy/kubernetes, or of another overlay, with
// components and more text, and returns its folder.
func overlay(t *testing.T, more, resource string, components ...string) string {
	t.Helper()
	for i, c := range components {
		components[i] = filepath.Join(base, "..", c)
	}
	if !filepath.IsAbs(resource) {
		resource = filepath.Join(base, "..", resource)
	}
	dir := t.TempDir()
	if err := manifest.WriteOverlay(dir, more, resource, components...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rendered returns the objects that kustomize makes of a folder.
func rendered(t *testing.T, dir string) []manifest.Object {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := manifest.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryComponentIsRendered(t *testing.T) {
	files, err := filepath.Glob(base + "/../*/kustomization.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d kustomizations: %v", len(files), err)
	}
	for _, file := range files {
		switch name := filepath.Base(filepath.Dir(file)); name {
		case "base", "production":
			rendered(t, filepath.Dir(file))
		case "replicas": // it is added after these two
			rendered(t, overlay(t, "", "base", "elasticsearch", "s3", name))
		default:
			rendered(t, overlay(t, "", "base", name))
		}
	}
}

// fetcherImages returns the image of the fetcher, and that of its Jobs, among some objects.
func fetcherImages(all []manifest.Object) (image, ofJobs string) {
	for _, o := range all {
		d, ok := o.(*appsv1.Deployment)
		if !ok || d.Name != "fetcher" {
			continue
		}
		c := d.Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "BAI_FETCHER_IMAGE" })
		if image = c.Image; i >= 0 {
			ofJobs = c.Env[i].Value
		}
	}
	return image, ofJobs
}

// Jobs that fetch are made from a text, in which kustomize changes no image.
func TestJobsThatFetchRunTheImageOfTheFetcher(t *testing.T) {
	const images = "images: [{name: docker.io/benchmark-ai/fetcher, newName: registry.example.org/fetcher, newTag: '1'}]\n"
	for name, dir := range map[string]string{
		"images beside the component": overlay(t, images, "production", "fetch-jobs"),
		"images over the component":   overlay(t, images, overlay(t, "", "production", "fetch-jobs")),
	} {
		image, ofJobs := fetcherImages(rendered(t, dir))
		if image != "registry.example.org/fetcher:1" || ofJobs != image {
			t.Errorf("%s: the fetcher runs %q, its jobs %q", name, image, ofJobs)
		}
	}
	if own := fetchJob(t).Spec.Template.Spec.Containers[0].Image; own != "" {
		t.Errorf("job.yaml has the image %q in place of the fetcher's", own)
	}
}
