// Package contexts is the file in which a user keeps the platforms that baictl
// talks to.
package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A Context names a platform and the user's identity there. Empty fields have no effect.
type Context struct {
	Server    string `toml:"server" json:"server,omitempty"`       // HOST:PORT
	Owner     string `toml:"owner" json:"owner,omitempty"`         // who submits runs, and whose run names are used
	Namespace string `toml:"namespace" json:"namespace,omitempty"` // the team of submitted runs
	Kibana    string `toml:"kibana" json:"kibana,omitempty"`       // URL of the Kibana that shows that platform's runs

	KibanaPrefix string `toml:"kibana_prefix" json:"kibanaPrefix,omitempty"` // of the names of the dashboards in it; empty means bai
}

// Contexts are those of a user.
type Contexts struct {
	Current string             `toml:"current"` // the one that is used; may be empty
	All     map[string]Context `toml:"contexts"`
}

// A FileError is a fault in the file.
type FileError struct {
	Path         string
	Line, Column int // from 1; 0 where it concerns the whole file
	Message      string
}

// Error is file:line:column: message.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Message)
}

// Path is where the file lies: bai/config.toml in the folder that
// XDG_CONFIG_HOME names, or else in ~/.config. It is empty where there is no
// home.
func Path(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG specification ignores others
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "bai", "config.toml")
}

// Load reads the file at path. A missing file has no contexts. Faulty content is a
// FileError.
func Load(path string) (Contexts, error) {
	if path == "" {
		return Contexts{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Contexts{}, nil
	}
	if err != nil {
		return Contexts{}, &FileError{Path: path, Message: "cannot be read: " + cause(err)}
	}
	return Parse(path, text)
}

// Parse reads the text of a file, strictly.
func Parse(path string, text []byte) (Contexts, error) {
	var c Contexts
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Contexts{}, toFileError(path, err)
	}
	for _, name := range c.Names() {
		if fault := CheckName(name); fault != "" {
			return Contexts{}, &FileError{Path: path, Message: fault}
		}
	}
	if _, ok := c.All[c.Current]; c.Current != "" && !ok {
		return Contexts{}, &FileError{
			Path:    path,
			Message: fmt.Sprintf("current = %q: there is no context of that name, only %q", c.Current, c.Names()),
		}
	}
	return c, nil
}

func toFileError(path string, err error) error {
	if e, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(e.Errors) > 0 {
		first := e.Errors[0]
		line, column := first.Position()
		return &FileError{path, line, column, fmt.Sprintf(
			"%s: unknown key (known: current, contexts.NAME.server, .owner, .namespace, .kibana, .kibana_prefix)",
			strings.Join(first.Key(), "."))}
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		return &FileError{path, line, column, strings.TrimPrefix(e.Error(), "toml: ")}
	}
	return &FileError{Path: path, Message: err.Error()}
}

// Names are those of the contexts, sorted.
func (c Contexts) Names() []string { return slices.Sorted(maps.Keys(c.All)) }

// CheckName returns the fault of a context's name; "" for a valid one.
func CheckName(name string) string {
	const most = 63
	if name == "" || len(name) > most {
		return fmt.Sprintf("the name of a context has 1 to %d characters", most)
	}
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return fmt.Sprintf("%q is no name of a context: use letters, digits, \"-\", \"_\" and \".\"", name)
		}
	}
	return ""
}

// Text is the form that Parse reads.
func (c Contexts) Text() string {
	var b strings.Builder
	b.WriteString("# The platforms that baictl talks to: see baictl config --help.\n")
	if c.Current != "" {
		fmt.Fprintf(&b, "current = %s\n", quote(c.Current))
	}
	for _, name := range c.Names() {
		fmt.Fprintf(&b, "\n[contexts.%s]\n", quote(name))
		one := c.All[name]
		for _, f := range []struct{ key, value string }{
			{"server", one.Server},
			{"owner", one.Owner},
			{"namespace", one.Namespace},
			{"kibana", one.Kibana},
			{"kibana_prefix", one.KibanaPrefix},
		} {
			if f.value != "" {
				fmt.Fprintf(&b, "%s = %s\n", f.key, quote(f.value))
			}
		}
	}
	return b.String()
}

// quote is a basic string of TOML, whose escapes are those of JSON.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < 0x20 || r == 0x7f:
			b.WriteString(`\u` + strconv.FormatInt(int64(r)+0x10000, 16)[1:])
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// Save puts the contexts in place of the file at path, whole or not at all,
// readable by the user alone.
func (c Contexts) Save(path string) error {
	if path == "" {
		return errors.New("save the contexts: neither XDG_CONFIG_HOME nor HOME says where")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save the contexts: %w", err)
	}
	f, err := os.CreateTemp(dir, ".config-*") // mode 0600
	if err != nil {
		return fmt.Errorf("save the contexts: %w", err)
	}
	_, writing := f.WriteString(c.Text())
	err = errors.Join(writing, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // a leftover is a hidden file
		return fmt.Errorf("save the contexts at %q: %w", path, err)
	}
	return nil
}

func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
