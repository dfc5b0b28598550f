// Package contexts keeps connections with names in one small file, so that people
// who look at several ensembles need not type their addresses.
//
// The file is YAML:
//
//	current: prod
//	contexts:
//	  prod:
//	    servers: zk1:2181,zk2:2181,zk3:2181/locks
//	    tls-ca: /etc/ssl/zk-ca.pem
//	    auth-file: /home/ann/.zklock-auth
//
// It has no secrets, only names of files with them. "local" is always there: this
// user's own local server.
package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/zklock/zklock/internal/ownership"

	"github.com/zklock/zklock/cmd/zklock/internal/similar"
)

// Local is the name of the context that is this user's local server.
const Local = "local"

// Bounds of a file.
const (
	maxFile = 1 << 20
	maxName = 64
)

// ErrFile is wrapped by errors about the file and what is in it.
var ErrFile = errors.New("contexts")

// Keys are what a context may say: names of flags, servers first.
func Keys() []string {
	return []string{"servers", "session-timeout", "connect-timeout", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "auth-file"}
}

// A Context is a connection: values of flags by their names.
type Context map[string]string

// A File is all contexts of a user. It belongs to one goroutine.
type File struct {
	Path     string
	Current  string // Local if none was chosen
	Contexts map[string]Context
}

// stored is how a file is written.
type stored struct {
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// Place is where the file is unless something else is said: in the directory for
// settings of the XDG specification, by default ~/.config. It is "" where there is
// no home.
func Place(getenv func(string) string) string {
	// The specification says that a relative path is to be ignored.
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "zklock", "config.yaml")
}

// Load reads a file. One that is not there has no contexts, unless it must be.
func Load(path string, must bool) (*File, error) {
	f := &File{Path: path, Current: Local, Contexts: map[string]Context{}}
	if path == "" {
		return f, nil
	}
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := f.parse(text); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFile, path, err)
	}
	return f, nil
}

// read returns a file's text. It says where locks are looked for, so nobody else may
// be able to change it.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no regular file", ErrFile, path)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && permissions {
		return nil, fmt.Errorf("%w: %s has mode %04o: others could change where it leads: chmod go-w %s", ErrFile, path, mode, path)
	}
	if uid, other := ownership.Other(info); other {
		return nil, fmt.Errorf("%w: %s belongs to user %d, who could change where it leads: give it to this user or root", ErrFile, path, uid)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than 1 MiB", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return text, nil
}

// parse reads the text of a file.
func (f *File) parse(text []byte) error {
	var s stored
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	for name, c := range s.Contexts {
		if err := Check(name, c); err != nil {
			return err
		}
		f.Contexts[name] = c
	}
	if s.Current != "" {
		f.Current = s.Current
	}
	return nil
}

// Check reports what is wrong with a context and its name.
func Check(name string, c Context) error {
	if err := checkName(name); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if slices.Contains(Keys(), key) {
			continue
		}
		meant := ""
		if near := similar.To(key, Keys()); near != "" {
			meant = "; did you mean " + near + "?"
		}
		return fmt.Errorf("context %s: %q is nothing that a context can say%s", name, key, meant)
	}
	if c["servers"] == "" {
		return fmt.Errorf("context %s names no servers", name)
	}
	return nil
}

// checkName keeps names to what needs no quotes anywhere.
func checkName(name string) error {
	good := name != "" && len(name) <= maxName && !strings.HasPrefix(name, "-")
	for _, c := range name {
		good = good && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	switch {
	case !good:
		return fmt.Errorf("%q is no name for a context: up to %d letters, digits, and . _ -", name, maxName)
	case name == Local:
		return fmt.Errorf("%q is this user's local server, and no name for another context", name)
	}
	return nil
}

// Get returns a context; nil for Local.
func (f *File) Get(name string) (Context, error) {
	if name == Local {
		return nil, nil
	}
	if c, ok := f.Contexts[name]; ok {
		return c, nil
	}
	meant := ""
	if near := similar.To(name, f.Names()); near != "" {
		meant = "; did you mean " + near + "?"
	}
	return nil, fmt.Errorf("%w: there is no context %q in %s%s", ErrFile, name, f.Path, meant)
}

// Names are all contexts, Local first.
func (f *File) Names() []string {
	return append([]string{Local}, slices.Sorted(maps.Keys(f.Contexts))...)
}

// Save writes the file: as a whole, or not at all.
func (f *File) Save() error {
	if f.Path == "" {
		return fmt.Errorf("%w: no place for the file: there is no HOME; name one with --config-file", ErrFile)
	}
	s := stored{Current: f.Current, Contexts: f.Contexts}
	if s.Current == Local {
		s.Current = ""
	}
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	path := f.Path
	if err := ownership.CheckLinks(path); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link to where somebody keeps such files stays one
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return nil
}

// replace writes a file of this user's alone: as a whole, or not at all.
func replace(path string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // it is gone if all went well
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
