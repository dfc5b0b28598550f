package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SearchPath returns the PATH variable. If it is not set, SearchPath returns the default of
// execvp.
func SearchPath() string {
	if path, set := os.LookupEnv("PATH"); set {
		return path
	}
	return "/bin:/usr/bin"
}

// FindCommand returns the executable of a name: the name itself if it contains a slash,
// otherwise the first match in path, a PATH variable. Like a shell, it skips files that
// are not executable, and reports one only if no other file matches. The error wraps
// ErrNotFound or ErrNotExecutable.
func FindCommand(name, path string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%q: %w", name, ErrNotFound)
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		return name, check(name)
	}
	notExecutable := error(nil)
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "." // POSIX: an empty entry is the working directory
		}
		for _, suffix := range suffixes() {
			file := filepath.Join(dir, name) + suffix
			err := check(file)
			if err == nil {
				return absolute(file), nil
			}
			if notExecutable == nil && isFile(file) {
				notExecutable = err
			}
		}
	}
	if notExecutable != nil {
		return "", notExecutable
	}
	return "", fmt.Errorf("%s: %w in PATH", name, ErrNotFound)
}

// absolute makes a path independent of the working directory.
func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// check returns why a file cannot be executed, or nil.
func check(file string) error {
	info, err := os.Stat(file)
	switch {
	case os.IsPermission(err):
		return fmt.Errorf("%s: %w: %w", file, ErrNotExecutable, os.ErrPermission)
	case err != nil:
		return fmt.Errorf("%s: %w", file, ErrNotFound)
	case info.IsDir():
		return fmt.Errorf("%s: %w: it is a directory", file, ErrNotExecutable)
	case !permitted(file):
		return fmt.Errorf("%s: %w: no permission, see chmod +x", file, ErrNotExecutable)
	}
	return nil
}

// isFile reports whether a file exists and is not a directory.
func isFile(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir()
}
