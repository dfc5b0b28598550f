package zklock

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/zklock/internal/queue"
)

// Bounds of lock names, below root where the path lies there. ZooKeeper has none
// of its own but its frame.
const (
	maxName   = 512 // bytes
	maxLevels = 16
)

// root is where relative names live.
const root = "/zklock/"

// PathOf returns the path of the znode that a lock's name means below the
// connection string's chroot, or an error that wraps ErrInvalidName. It is for
// those who want to refuse a bad name before they connect.
func PathOf(name string) (string, error) { return lockPath(name) }

// lockPath turns a name into the path of the lock's znode: "demo" means
// "/zklock/demo", and a name that begins with a slash is the path itself.
func lockPath(name string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return name, fmt.Errorf("%w: "+format, append([]any{ErrInvalidName}, args...)...)
	}
	if name == "" {
		return bad("it is empty")
	}
	// A path that a name stands for has to pass as well: it comes back as a name.
	bounded := strings.TrimPrefix(name, root)
	if len(bounded) > maxName {
		return bad("%d bytes are more than %d", len(bounded), maxName)
	}
	if !utf8.ValidString(name) {
		return bad("it is not UTF-8")
	}
	for i, r := range name {
		if forbidden(r) {
			return bad("character %U at byte %d is not allowed in ZooKeeper's paths", r, i)
		}
	}
	levels := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if n := strings.Count(strings.TrimPrefix(bounded, "/"), "/") + 1; n > maxLevels {
		return bad("%d levels are more than %d", n, maxLevels)
	}
	for _, level := range levels {
		switch level {
		case "":
			return bad("it has an empty level: two slashes in a row, or one at the end")
		case ".", "..":
			return bad("a level may not be %q", level)
		}
		// Below another lock it would stand in that lock's queue, for ever.
		if _, class := queue.ParseName(level); class != queue.Foreign {
			return bad("level %q looks like an entry in a lock's queue", level)
		}
	}
	if levels[0] == "zookeeper" {
		return bad("/zookeeper belongs to the servers")
	}
	if name[0] == '/' {
		return name, nil
	}
	return root + name, nil
}

// forbidden reports whether ZooKeeper refuses the character in a path, as
// org.apache.zookeeper.common.PathUtils does. Java looks at UTF-16 units, so
// that what needs two of them is refused as well.
func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
