package zk

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkPath returns an error if path is not a valid znode path by the rules of
// org.apache.zookeeper.common.PathUtils. The server appends digits to the name of a
// sequential znode, so a sequential path may end with a slash.
func checkPath(path string, sequential bool) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: it is empty, the root is \"/\"", ErrInvalidPath)
	case path[0] != '/':
		return fmt.Errorf("%w: it does not begin with a slash", ErrInvalidPath)
	case path == "/":
		return nil
	case path[len(path)-1] == '/' && !sequential:
		return fmt.Errorf("%w: it ends with a slash", ErrInvalidPath)
	}
	if at := badChar(path); at >= 0 {
		return fmt.Errorf("%w: character %q at byte %d", ErrInvalidPath, firstRune(path[at:]), at)
	}
	for rest, more := path[1:], true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		switch {
		case sequential && !more: // any name is valid, because digits are appended
		case name == "":
			return fmt.Errorf("%w: two slashes in a row", ErrInvalidPath)
		case name == ".", name == "..":
			return fmt.Errorf("%w: relative name %q", ErrInvalidPath, name)
		}
	}
	return nil
}

// firstRune returns the first character of s, or its first byte if s is invalid
// UTF-8.
func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// badChar returns the index of the first character that no path may contain, or -1.
// Java checks UTF-16, in which characters above U+FFFF consist of two forbidden
// surrogates.
func badChar(path string) int {
	for i, r := range path {
		switch {
		case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			return i // includes U+FFFD, which stands for invalid UTF-8
		}
	}
	return -1
}

// chroot is the path that is prepended to all of a client's paths, or "".
type chroot string

// add converts a client's path to the server's.
func (c chroot) add(path string) string {
	if c == "" {
		return path
	}
	if path == "/" {
		return string(c)
	}
	return string(c) + path
}

// addAll is add for a list, which it does not change.
func (c chroot) addAll(paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = c.add(path)
	}
	return all
}

// strip converts a server's path to the client's. A path outside the chroot, such as
// that of the configuration, stays unchanged.
func (c chroot) strip(path string) string {
	if c == "" {
		return path
	}
	if path == string(c) {
		return "/"
	}
	if rest, ok := strings.CutPrefix(path, string(c)); ok && rest[0] == '/' {
		return rest
	}
	return path
}
