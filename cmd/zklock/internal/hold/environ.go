package hold

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/inspect"
)

// lockEnvironment has the values of the variables that describe the locks to a command.
type lockEnvironment struct {
	locks   []lockState // at least one
	mode    zklock.Mode
	session int64
	servers string
	// identity has the variables with which a nested zklock reaches the same servers. An
	// empty value removes a variable.
	identity map[string]string
}

// environ returns base with the variables of the command. Name, path, and token are those
// of the first lock; ZKLOCK_LOCKS has one line for each lock. No variable has a secret:
// the connection string cannot contain one, and the identity names files.
func (t lockEnvironment) environ(base []string) []string {
	vars := []struct{ key, value string }{
		{"ZKLOCK_NAME", t.locks[0].Lock},
		{"ZKLOCK_PATH", t.locks[0].Path},
		{process.EnvToken, strconv.FormatInt(t.locks[0].Token, 10)},
		{"ZKLOCK_MODE", string(t.mode)},
		{"ZKLOCK_LOCKS", tokenLines(t.locks)},
		{process.EnvSession, inspect.FormatSession(t.session)},
		{"ZKLOCK_SERVERS", t.servers},
	}
	env := slices.Clone(base)
	for _, v := range vars {
		// A value in base comes from an outer zklock and describes another lock.
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

// tokenLines returns one line "TOKEN PATH" for each lock. A path can have spaces but no
// line breaks, so a shell can read the lines with "while read -r token path".
func tokenLines(locks []lockState) string {
	lines := make([]string, len(locks))
	for i, l := range locks {
		lines[i] = strconv.FormatInt(l.Token, 10) + " " + l.Path
	}
	return strings.Join(lines, "\n")
}
