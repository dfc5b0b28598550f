package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/ownership"
)

// A context file keeps named connections, so that users of several ensembles need not type
// addresses.
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
// It contains no secrets, only the names of files that do. The context "local" always
// exists: it is this user's local server.

// LocalContext is the name of the context of this user's local server.
const LocalContext = "local"

// Limits of a file.
const (
	maxContexts = 1 << 20
	maxName     = 64
)

// permissions reports whether the mode of a file shows which users may write it.
const permissions = runtime.GOOS != "windows"

// ErrContexts is wrapped by errors about the file and its contents.
var ErrContexts = errors.New("contexts")

// ContextKeys are the keys of a context: names of flags, servers first.
func ContextKeys() []string {
	return []string{"servers", "session-timeout", "connect-timeout", "server-tick", "sync-heartbeat", "keep-order", "read-only",
		"tls-ca", "tls-cert", "tls-key", "tls-server-name", "auth-file",
		"kerberos-keytab", "kerberos-ccache", "kerberos-principal", "kerberos-server"}
}

// A Context is a connection: the values of flags by name.
type Context map[string]string

// A ContextFile has all contexts of a user. It belongs to one goroutine.
type ContextFile struct {
	Path     string
	Current  string // LocalContext if the user chose none
	Contexts map[string]Context
}

// stored is the format of a file.
type stored struct {
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// ContextPath returns the default path of the file: in the configuration directory of the
// XDG specification, which is ~/.config by default. It is "" if there is no home
// directory.
func ContextPath(getenv func(string) string) string {
	// The specification says that programs ignore a relative path.
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
func Load(path string, must bool) (*ContextFile, error) {
	f := &ContextFile{Path: path, Current: LocalContext, Contexts: map[string]Context{}}
	if path == "" {
		return f, nil
	}
	text, err := readContexts(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := f.parse(text); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrContexts, path, err)
	}
	return f, nil
}

// readContexts returns the text of a file. The file decides to which servers commands
// connect, so it fails if other users can change the file.
func readContexts(path string) ([]byte, error) {
	if err := ownership.CheckLinks(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContexts, err)
	}
	text, info, err := inputfile.Read(path, maxContexts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContexts, err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && permissions {
		return nil, fmt.Errorf("%w: %s has mode %04o: other users could change it: chmod go-w %s", ErrContexts, path, mode, legible.Word(path))
	}
	if uid, other := ownership.Other(info); other {
		return nil, fmt.Errorf("%w: %s belongs to user %d, who could change it: give it to this user or root", ErrContexts, path, uid)
	}
	return text, nil
}

// parse parses the text of a file.
func (f *ContextFile) parse(text []byte) error {
	var s stored
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	for name, c := range s.Contexts {
		if err := CheckContext(name, c); err != nil {
			return err
		}
		f.Contexts[name] = c
	}
	if s.Current != "" {
		f.Current = s.Current
	}
	return nil
}

// CheckContext returns an error if a context or its name is invalid.
func CheckContext(name string, c Context) error {
	if err := checkName(name); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if slices.Contains(ContextKeys(), key) {
			continue
		}
		return fmt.Errorf("context %s: %q is not a setting of a context%s", name, key, DidYouMean(key, ContextKeys()))
	}
	if c["servers"] == "" {
		return fmt.Errorf("context %s names no servers", name)
	}
	return nil
}

// checkName returns an error unless a name needs no quotes in any shell or YAML.
func checkName(name string) error {
	good := name != "" && len(name) <= maxName && !strings.HasPrefix(name, "-")
	for _, c := range name {
		good = good && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	switch {
	case !good:
		return fmt.Errorf("%q is not a context name: use up to %d letters, digits, and . _ -", name, maxName)
	case name == LocalContext:
		return fmt.Errorf("the name %q is reserved for this user's local server", name)
	}
	return nil
}

// Get returns a context, nil for LocalContext.
func (f *ContextFile) Get(name string) (Context, error) {
	if name == LocalContext {
		return nil, nil
	}
	if c, ok := f.Contexts[name]; ok {
		return c, nil
	}
	if f.Path == "" {
		return nil, errNoHome
	}
	do := cmp.Or(DidYouMean(name, f.Names()), "; zklock context ls lists them")
	return nil, fmt.Errorf("%w: no context %q in %s%s", ErrContexts, name, f.Path, do)
}

// errNoHome means that there is no default path of the file.
var errNoHome = fmt.Errorf("%w: HOME is not set; name the file with --config-file", ErrContexts)

// Names returns the names of all contexts, LocalContext first.
func (f *ContextFile) Names() []string {
	return append([]string{LocalContext}, slices.Sorted(maps.Keys(f.Contexts))...)
}

// changeTime limits how long a change of a file waits for the changes of other processes.
const changeTime = 10 * time.Second

// ChangeContexts loads a file as [Load] does, and saves it after change returned nil. It lets
// one process at a time change the file.
func ChangeContexts(path string, must bool, change func(*ContextFile) error) error {
	if path != "" {
		lock, err := lockContexts(path, must)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrContexts, err)
		}
		if lock != nil {
			defer lock.Close() // unlocks the directory
		}
	}
	f, err := Load(path, must)
	if err == nil {
		err = change(f)
	}
	if err != nil {
		return err
	}
	return f.save()
}

// lockContexts locks the directory of a file until the result is closed. The result is nil if
// there is no directory and the file must exist.
func lockContexts(path string, must bool) (*os.File, error) {
	path, err := withoutLinks(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(ownership.Parent(path)); must && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := ownership.MakeDir(ownership.Parent(path), 0o700); err != nil {
		return nil, err
	}
	dir, err := ownership.OpenDir(ownership.Parent(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return ownership.Lock(dir, changeTime)
}

// withoutLinks returns the path of the file to replace: a link to a file that the user keeps
// elsewhere stays a link. It returns an error for a link of another user.
func withoutLinks(path string) (string, error) {
	real, _, err := ownership.Resolve(path)
	return real, err
}

// save replaces the file atomically. Its directory exists.
func (f *ContextFile) save() error {
	if f.Path == "" {
		return errNoHome
	}
	s := stored{Current: f.Current, Contexts: f.Contexts}
	if s.Current == LocalContext {
		s.Current = ""
	}
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	path, err := withoutLinks(f.Path)
	if err == nil {
		err = replace(path, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrContexts, err)
	}
	return nil
}

// replace writes a file that only this user can read, whole or not at all.
func replace(path string, text []byte) error {
	dir, err := ownership.OpenDir(ownership.Parent(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return ownership.Replace(dir, filepath.Base(path), 0o600, func(f *os.File) error {
		if _, err := f.Write(text); err != nil {
			return err
		}
		return f.Sync()
	})
}
