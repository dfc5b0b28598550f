package tree

import (
	"strings"
	"unicode/utf8"
)

// The nodes that every tree contains and that cannot be deleted.
const (
	rootPath   = "/"
	procPath   = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// maxDepth is the maximum number of names in the path of a create. A change costs a
// step for each ancestor: it is counted there, and the ancestor may have a recursive
// watch.
//
// These watches are looked up by path. maxPathCost bounds the total length of these
// paths: it is the maximum of the number of names times the length of the path.
const (
	maxDepth    = 512
	maxPathCost = 8 << 20
)

// tooDeep reports whether a path exceeds maxDepth or maxPathCost.
func tooDeep(path string) bool {
	if len(path) <= 2*maxDepth {
		return false
	}
	names := strings.Count(path, "/")
	return names > maxDepth || names*len(path) > maxPathCost
}

// isSpecial reports whether path is one of the tree's own nodes.
func isSpecial(path string) bool {
	switch path {
	case rootPath, procPath, quotaPath, configPath:
		return true
	}
	return false
}

// parentOf returns the path without its last name. As in Java this is textual, before
// the path is validated. The parent of "/a" is "". It returns false if there is no
// slash, or if there is a zero character.
func parentOf(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:i], true
}

// validPath reports whether path is absolute, and has no empty or relative names and
// no characters that ZooKeeper forbids (common.PathUtils). Java checks UTF-16:
// characters above U+FFFF are surrogates to it, and invalid UTF-8 is U+FFFD. All of
// these are forbidden.
func validPath(path string) bool {
	if path == rootPath {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	// First the names: none may be empty, ".", or "..". Other names with dots are
	// valid.
	start := 1
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if name := path[start:i]; name == "" || name == "." || name == ".." {
			return false
		}
		start = i + 1
	}
	// Then the characters. Control characters would garble listings and logs, and
	// zero ends a string for C clients.
	for i := 0; i < len(path); {
		if c := path[i]; c < utf8.RuneSelf {
			if c <= 0x1f || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(path[i:])
		if forbidden(r) {
			return false
		}
		i += n
	}
	return true
}

// forbidden reports whether a character outside ASCII is forbidden.
func forbidden(r rune) bool {
	return r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
