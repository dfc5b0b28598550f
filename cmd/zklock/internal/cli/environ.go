package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// told is what a command under a lock is told in its environment.
type told struct {
	name, path string
	token      int64
	session    int64
	servers    string
}

// environ returns base with what the command is told. The servers come without
// secrets, since the connection string cannot hold any.
func (t told) environ(base []string) []string {
	vars := []struct{ key, value string }{
		{"ZKLOCK_NAME", t.name},
		{"ZKLOCK_PATH", t.path},
		{"ZKLOCK_TOKEN", strconv.FormatInt(t.token, 10)},
		{"ZKLOCK_MODE", "exclusive"},
		{"ZKLOCK_SESSION", fmt.Sprintf("0x%x", t.session)},
		{"ZKLOCK_SERVERS", t.servers},
	}
	env := slices.Clone(base)
	for _, v := range vars {
		// What an outer zklock said is about another lock.
		env = slices.DeleteFunc(env, func(s string) bool { return strings.HasPrefix(s, v.key+"=") })
		env = append(env, v.key+"="+v.value)
	}
	return env
}
