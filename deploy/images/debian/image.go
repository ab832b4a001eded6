package debian

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An Image is the definition of an image, beside which lies its lock.
type Image struct {
	Packages []string // that it is about; its lock has those that they need, too
	Env      []string // NAME=VALUE, as a container has them

	dir   string
	users []string
	steps []step
}

// A step adds one thing to the tree.
type step func(t *Tree) error

// Files of the folder of an image.
const (
	definition = "image"
	lockFile   = "packages.lock"
)

// ReadImage reads the definition in a folder. Each line has a word and what it is about:
//
//	package NAME…            packages that the image has
//	env NAME VALUE           a variable of its containers
//	folder /PATH MODE        a folder, with its mode in octal
//	link /PATH TARGET        a symbolic link: scripts of packages would make those of alternatives
//	file FROM /PATH MODE     a file, from the folder of the definition
//	user NAME ID /HOME       a user, with a group of that name and number
//
// Empty lines and those that begin with # are left out.
func ReadImage(dir string) (Image, error) {
	f, err := os.Open(filepath.Join(dir, definition))
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = f.Close() }()
	im := Image{dir: dir}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text()+" ", "#")
		if err := im.line(strings.Fields(text)); err != nil {
			return Image{}, fmt.Errorf("%s:%d: %w", f.Name(), n, err)
		}
	}
	if len(im.Packages) == 0 {
		return Image{}, fmt.Errorf("%s: names no package", f.Name())
	}
	return im, lines.Err()
}

// line reads the words of a line.
func (im *Image) line(words []string) error {
	if len(words) == 0 {
		return nil
	}
	word, args := words[0], words[1:]
	wanted := map[string]int{"env": 2, "folder": 2, "link": 2, "file": 3, "user": 3}
	if n, ok := wanted[word]; word != "package" && (!ok || n != len(args)) {
		return fmt.Errorf("%q is no line of a definition", strings.Join(words, " "))
	}
	switch word {
	case "package":
		im.Packages = append(im.Packages, args...)
	case "env":
		im.Env = append(im.Env, args[0]+"="+args[1])
	case "user":
		im.users = append(im.users, strings.Join(args, ":"))
	default:
		return im.entry(word, args)
	}
	return nil
}

// entry reads a line about a folder, a link or a file.
func (im *Image) entry(word string, args []string) error {
	at := args[0]
	if word == "file" {
		at = args[1]
	}
	name, err := clean(strings.TrimPrefix(at, "/"))
	if err != nil || name == "" || !strings.HasPrefix(at, "/") {
		return fmt.Errorf("%q is no path of a file", at)
	}
	if word == "link" {
		im.steps = append(im.steps, func(t *Tree) error { return t.Link(name, args[1]) })
		return nil
	}
	mode, err := strconv.ParseInt(args[len(args)-1], 8, 16)
	if err != nil {
		return fmt.Errorf("%q is no mode, as 0755", args[len(args)-1])
	}
	im.steps = append(im.steps, func(t *Tree) error {
		if word == "folder" {
			return t.Folder(name, mode)
		}
		text, err := os.ReadFile(filepath.Join(im.dir, args[0]))
		if err != nil {
			return err
		}
		return t.File(name, string(text), mode)
	})
	return nil
}

// Lock reads the lock beside the definition.
func (im Image) Lock() (Lock, error) {
	file := filepath.Join(im.dir, lockFile)
	f, err := os.Open(file)
	if err != nil {
		return Lock{}, fmt.Errorf("%w (make locks)", err)
	}
	defer func() { _ = f.Close() }()
	l, err := ReadLock(f)
	if err != nil {
		return Lock{}, fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range im.Packages {
		if !l.has(name) {
			return Lock{}, fmt.Errorf("%s: lacks package %s of the definition (make locks)", file, name)
		}
	}
	return l, nil
}

func (l Lock) has(name string) bool {
	for _, p := range l.Packages {
		if p.Name == name {
			return true
		}
	}
	return false
}

// WriteLock writes the lock beside the definition.
func (im Image) WriteLock(l Lock) error {
	f, err := os.Create(filepath.Join(im.dir, lockFile))
	if err != nil {
		return err
	}
	return errors.Join(l.Write(f), f.Close())
}

// Write writes the root file system of the image as a tar archive. The same definition and lock
// give the same bytes.
func (im Image) Write(ctx context.Context, s Source, w io.Writer) error {
	l, err := im.Lock()
	if err != nil {
		return err
	}
	t, err := NewTree(w)
	if err != nil {
		return err
	}
	for _, p := range l.Packages {
		file, err := s.Fetch(ctx, l, p)
		if err != nil {
			return err
		}
		if err := t.Add(file); err != nil {
			return fmt.Errorf("unpack %s %s: %w", p.Name, p.Version, err)
		}
	}
	if err := im.accounts(t); err != nil {
		return err
	}
	for _, add := range im.steps {
		if err := add(t); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(im.dir, definition), err)
		}
	}
	return t.Close()
}

// accounts adds the users and their groups.
func (im Image) accounts(t *Tree) error {
	users, groups := "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"root:x:0:\nnogroup:x:65534:\n"
	for _, u := range im.users {
		parts := strings.SplitN(u, ":", 3)
		users += fmt.Sprintf("%s:x:%s:%s::%s:/usr/sbin/nologin\n", parts[0], parts[1], parts[1], parts[2])
		groups += fmt.Sprintf("%s:x:%s:\n", parts[0], parts[1])
	}
	return errors.Join(t.File("etc/passwd", users, 0o644), t.File("etc/group", groups, 0o644),
		t.File("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", 0o644))
}
