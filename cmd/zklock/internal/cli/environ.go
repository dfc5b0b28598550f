package cli

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock"
)

// told is what a command under locks is told in its environment.
type told struct {
	locks   []held // at least one
	mode    zklock.Mode
	session int64
	servers string
	// identity has what a zklock inside needs to reach the same servers, by the
	// names of variables; an empty value removes one.
	identity map[string]string
}

// environ returns base with what the command is told: name, path and token are
// the first lock's; ZKLOCK_LOCKS has a line for each, with token and path. The
// servers come without secrets, since the connection string cannot hold any,
// and so does the identity, which names files.
func (t told) environ(base []string) []string {
	vars := []struct{ key, value string }{
		{"ZKLOCK_NAME", t.locks[0].Lock},
		{"ZKLOCK_PATH", t.locks[0].Path},
		{"ZKLOCK_TOKEN", strconv.FormatInt(t.locks[0].Token, 10)},
		{"ZKLOCK_MODE", string(t.mode)},
		{"ZKLOCK_LOCKS", tokenLines(t.locks)},
		{"ZKLOCK_SESSION", sessionID(t.session)},
		{"ZKLOCK_SERVERS", t.servers},
	}
	env := slices.Clone(base)
	for _, v := range vars {
		// What an outer zklock said is about another lock.
		env = append(without(env, v.key), v.key+"="+v.value)
	}
	for _, key := range slices.Sorted(maps.Keys(t.identity)) {
		env = without(env, key)
		if value := t.identity[key]; value != "" {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// without returns an environment without a variable. On Windows, where the case of its
// name does not matter, it removes the variable in any spelling.
func without(env []string, key string) []string {
	return slices.DeleteFunc(env, func(s string) bool {
		name, _, ok := strings.Cut(s, "=")
		return ok && (name == key || runtime.GOOS == "windows" && strings.EqualFold(name, key))
	})
}

// tokenLines has a line for each lock, with its token and its path. A path may
// have blanks but no line breaks, so that a shell reads it with
// "while read -r token path".
func tokenLines(locks []held) string {
	lines := make([]string, len(locks))
	for i, l := range locks {
		lines[i] = strconv.FormatInt(l.Token, 10) + " " + l.Path
	}
	return strings.Join(lines, "\n")
}
