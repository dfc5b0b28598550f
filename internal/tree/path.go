package tree

import (
	"strings"
	"unicode/utf8"
)

// The nodes every tree has from the beginning and that can't be deleted.
const (
	rootPath   = "/"
	procPath   = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// maxDepth is how many names a path may have in a create. A change costs a step for
// each of them: it is counted in every node above, and every node above may have a
// recursive watch.
//
// Each of these watches is looked up by its path. maxPathCost bounds the length of all
// these paths together: it is the most that the number of names times the length of the
// path may be.
const (
	maxDepth    = 512
	maxPathCost = 8 << 20
)

// tooDeep reports whether a path has more names than maxDepth, or too many for its
// length.
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

// parentOf cuts the last name off, as Java does: textually, before anything is
// known about the path's validity. The parent of "/a" is "". It fails where
// there is no slash, and on a zero character.
func parentOf(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:i], true
}

// validPath reports whether path is absolute, without empty or relative names
// and without characters that ZooKeeper forbids (common.PathUtils). Java sees
// UTF-16: characters beyond the first plane are surrogates to it, and bytes that
// are no UTF-8 are U+FFFD, all of them forbidden.
func validPath(path string) bool {
	if path == rootPath {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	// Name by name first: none may be empty, ".", or "..". Other names with dots
	// are fine.
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
	// Then character by character. Control characters would garble listings and
	// logs, and zero ends a string for C clients.
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

// forbidden is the rule for characters outside ASCII.
func forbidden(r rune) bool {
	return r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
