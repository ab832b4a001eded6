package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Bounds of what one package unpacks to.
const (
	maxUnpacked = 8 << 30
	maxEntries  = 300_000
	maxName     = 1024
	maxDepth    = 64
)

// arHeader is the length of the header of a member of an ar archive (ar(5)): name 16, time 12,
// owner 6, group 6, mode 8, size 10, end 2.
const arHeader = 60

// open calls use with the tar archive of the files of a package, a file as deb(5) says. Only
// its data.tar is read, and none of its scripts.
func open(file string, use func(*tar.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 1<<20)
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != "!<arch>\n" {
		return errors.New("no Debian package: it is no ar archive")
	}
	for range 16 {
		name, size, err := member(r)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "data.tar") {
			return decompressed(name, io.LimitReader(r, size), use)
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
	}
	return errors.New("no Debian package: no data.tar among its first members")
}

// member reads the header of a member.
func member(r io.Reader) (name string, size int64, err error) {
	header := make([]byte, arHeader)
	if _, err := io.ReadFull(r, header); err != nil {
		return "", 0, errors.New("no Debian package: it has no data.tar")
	}
	name = strings.TrimRight(string(header[:16]), " /")
	size, err = strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)
	if err != nil || size < 0 || string(header[58:]) != "`\n" {
		return "", 0, fmt.Errorf("no Debian package: a member has no header of ar")
	}
	return name, size, nil
}

// decompressed calls use with the tar archive in a member. The program xz decompresses that
// form.
func decompressed(name string, r io.Reader, use func(*tar.Reader) error) error {
	bounded := func(r io.Reader) *tar.Reader { return tar.NewReader(io.LimitReader(r, maxUnpacked)) }
	switch strings.TrimPrefix(name, "data.tar") {
	case "":
		return use(bounded(r))
	case ".gz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return use(bounded(z))
	case ".xz":
		return xz(r, func(z io.Reader) error { return use(bounded(z)) })
	}
	return fmt.Errorf("%s has a compression other than gz and xz", name)
}

// xz calls use with what xz decompresses.
func xz(r io.Reader, use func(io.Reader) error) error {
	cmd := exec.Command("xz", "-dc", "--memlimit=512MiB")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = r, &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start xz, of the Debian package xz-utils: %w", err)
	}
	err = use(out)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	if _, err := io.CopyN(io.Discard, out, maxUnpacked); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("xz: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	return nil
}
