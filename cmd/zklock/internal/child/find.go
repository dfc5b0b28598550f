package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Find returns the executable that name means: itself if it has a slash, else
// the first of that name in path, a PATH variable. As in a shell, a file that
// may not be executed is passed over for one further on, and told of only if
// there is none. The error wraps ErrNotFound or ErrNotExecutable.
func Find(name, path string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%q: %w", name, ErrNotFound)
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		return name, check(name)
	}
	refused := error(nil)
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
			if refused == nil && isFile(file) {
				refused = err
			}
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", fmt.Errorf("%s: %w in PATH", name, ErrNotFound)
}

// absolute keeps a relative entry of PATH meaning the same file.
func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// check says why file cannot be run.
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

// isFile reports whether there is something that a user may have meant.
func isFile(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir()
}
