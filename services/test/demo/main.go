// Command demo shows the platform's main job on a machine that has nothing of
// it: it starts a platform of its own on free ports, serves the sample's data
// set to it, runs both samples with baictl, shows their metrics, and leaves
// nothing behind.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	root := flag.String("root", ".", "`folder` of the repository, built")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	d := demo{bin: filepath.Join(*root, "bin"), samples: filepath.Join(*root, "sample-benchmarks"), out: os.Stdout}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo runs the samples that lie in one folder with the programs that lie in
// another.
type demo struct {
	bin, samples string
	out          io.Writer
}

func (d demo) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "bai-demo-")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	data, closeData, err := serve(ctx, filepath.Join(d.samples, "compression"))
	if err != nil {
		return fmt.Errorf("serve the data set: %w", err)
	}
	defer closeData()
	fmt.Fprintf(d.out, "data set:  http://%s/access.log\n", data)

	server, halt, err := d.standalone(ctx, filepath.Join(dir, "platform"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, halt()) }()
	fmt.Fprintf(d.out, "platform:  %s, data in %s\n\n", server, dir)

	for _, sample := range []string{"hello-world", "compression"} {
		file, err := d.descriptor(dir, sample, data)
		if err != nil {
			return err
		}
		if err := d.sample(ctx, server, sample, file); err != nil {
			return fmt.Errorf("%s: %w", sample, err)
		}
	}
	return nil
}

// sample runs one sample to its end, and shows its metrics.
func (d demo) sample(ctx context.Context, server, name, file string) error {
	fmt.Fprintf(d.out, "$ baictl run %s\n", filepath.Base(file))
	if err := d.baictl(ctx, server, "run", file, "--name", name, "--timeout", "10m").Run(); err != nil {
		return fmt.Errorf("baictl run: %w", err)
	}
	fmt.Fprintf(d.out, "\n$ baictl metrics %s\n", name)
	if err := d.baictl(ctx, server, "metrics", name).Run(); err != nil {
		return fmt.Errorf("baictl metrics: %w", err)
	}
	fmt.Fprintln(d.out)
	return nil
}

func (d demo) baictl(ctx context.Context, server string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "baictl"), args...)
	cmd.Env = append(os.Environ(), "BAI_SERVER="+server)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// descriptor returns the sample's descriptor with the place of its data set
// where it is served now.
func (d demo) descriptor(dir, sample, data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(d.samples, sample, "descriptor.toml"))
	if err != nil {
		return "", fmt.Errorf("read the sample: %w", err)
	}
	file := filepath.Join(dir, sample+".toml")
	text = []byte(strings.ReplaceAll(string(text), "127.0.0.1:8000", data))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("write the descriptor: %w", err)
	}
	return file, nil
}

// standalone starts a platform on free ports, and returns its address once it
// is ready, and a function that ends it.
func (d demo) standalone(ctx context.Context, dir string) (addr string, halt func() error, err error) {
	log, err := os.Create(dir + ".log")
	if err != nil {
		return "", nil, fmt.Errorf("open the platform's log: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(d.bin, "bai"), "standalone", "--data",
		dir, "--listen", "127.0.0.1:0")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the demo, and the demo ends the platform
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the platform: %w", err)
	}
	halt = func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		return errors.Join(err, cmd.Wait(), log.Close())
	}
	addr, err = ready(out)
	if err != nil {
		return "", nil, errors.Join(err, halt(), show(log.Name(), os.Stderr))
	}
	return addr, halt, nil
}

// ready returns the address that a platform prints when it is ready.
func ready(out io.Reader) (string, error) {
	listens := regexp.MustCompile(`\blistens on (\S+)`)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1], nil
		}
	}
	return "", errors.Join(errors.New("the platform ended before it was ready"), lines.Err())
}

// show copies a file to w.
func show(path string, w io.Writer) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// serve serves the files of a folder on a free loopback port.
func serve(ctx context.Context, folder string) (addr string, closer func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: http.FileServer(http.Dir(folder)), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // ends with the closer
	return l.Addr().String(), func() { _ = s.Close() }, nil
}
