// Command images makes container images from files, without a container engine
// and without a registry. The same files give the same bytes.
//
//	images all -bin DIR -out DIR [-version V] [-prefix REGISTRY]
//	images one -ref NAME:TAG -out DIR [-rootfs TAR] [-entrypoint PATH] [-user UID:GID] [FILE=/PATH…]
//	images suite -out DIR [-dir suite] [-only NAME,…] [-prefix TEXT] [-tag TAG] [-mirror URL]
//	images rootfs -only NAME -out TAR
//	images push -from DIR [-to REGISTRY]
//	images locks [-only NAME,…]
//
// All makes the images of the platform's services, each with the one program
// that it runs, and the one that brings our programs into a benchmark's pod.
// What is written is an OCI image layout; beside each of our images lies, in the
// layout as its referrer and in a file, what it is made of (CycloneDX).
//
// Push sends the images of a layout to a registry, with the credentials of docker login or
// podman login, and by http only to this machine and private networks. What the registry has
// is not sent again.
//
// Suite makes the images of the suites, of Debian packages with the versions and digests of
// their locks. Rootfs writes the files of one of them. Locks asks apt for the versions of
// today, and is for machines with Debian.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func dispatch(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: images all …, or one, suite, rootfs, push, locks")
	}
	switch args[0] {
	case "all":
		return all(args[1:])
	case "one":
		return one(args[1:])
	case "suite":
		return suites(args[1:])
	case "rootfs":
		return rootfs(args[1:])
	case "push":
		return push(args[1:])
	case "locks":
		return locks(args[1:])
	}
	return fmt.Errorf("no command %q: there are all, one, suite, rootfs, push and locks", args[0])
}

// nobody is who our programs run as.
const nobody = "65532:65532"

// ours are the platform's images and the programs in them, the first of which
// is run.
func ours() map[string][]string {
	return map[string][]string{
		"gateway": {"gateway"}, "fetcher": {"fetcher"}, "executor": {"executor"}, "watcher": {"watcher"},
		"metrics-pusher": {"metrics-pusher"}, "analyst": {"analyst"}, "puller": {"puller"},
		"bai": {"bai", "bai-pod", "bai-pod-ship"}, "bai-pod": {"bai-pod", "bai-pod-ship"},
	}
}

func all(args []string) error {
	flags := flag.NewFlagSet("all", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "`folder` of the programs")
	out := flags.String("out", "", "`folder` of the layout, which is made anew")
	version := flags.String("version", "dev", "`tag` of the images")
	prefix := flags.String("prefix", "docker.io/benchmark-ai", "`registry` and path before their names")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := newLayout(*out)
	if err != nil {
		return err
	}
	for _, name := range sorted(ours()) {
		im := image{ref: *prefix + "/" + name + ":" + tag(*version), user: nobody, entrypoint: "/" + ours()[name][0], roots: true}
		var programs []string
		for _, program := range ours()[name] {
			programs = append(programs, filepath.Join(*bin, program))
			im.files = append(im.files, file{from: filepath.Join(*bin, program), to: "/" + program})
		}
		if err := l.add(im, programs...); err != nil {
			return fmt.Errorf("image %s: %w", im.ref, err)
		}
		fmt.Println(im.ref)
	}
	return nil
}

// tag makes a tag of a version, which may hold what tags may not.
func tag(version string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("+/ :", r) {
			return '-'
		}
		return r
	}, version)
}

func one(args []string) error {
	flags := flag.NewFlagSet("one", flag.ContinueOnError)
	var im image
	flags.StringVar(&im.ref, "ref", "", "`name:tag`")
	flags.StringVar(&im.rootfs, "rootfs", "", "uncompressed `tar` that is the first layer")
	flags.StringVar(&im.entrypoint, "entrypoint", "", "`path` of what is run")
	flags.StringVar(&im.user, "user", "", "`uid:gid`; empty means root")
	out := flags.String("out", "", "`folder` of the layout, which is made anew")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, spec := range flags.Args() {
		from, to, ok := strings.Cut(spec, "=")
		if !ok || !strings.HasPrefix(to, "/") {
			return fmt.Errorf("%q is not FILE=/PATH", spec)
		}
		im.files = append(im.files, file{from: from, to: to})
	}
	l, err := newLayout(*out)
	if err != nil {
		return err
	}
	return l.add(im)
}
