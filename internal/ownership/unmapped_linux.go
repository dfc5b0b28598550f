package ownership

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// unmapped returns the user that files of the machine's root seem to belong to, in a user
// namespace in which root has no number. In a rootless container, / and what is mounted
// from the machine often belong to it. It returns -1 if there is none: if root has a
// number here, or if users of the namespace have the number that stands for no user.
//
// Files of the machine's other users seem to belong to the same user. Nothing here can
// distinguish them, so callers trust such a directory only if no other user may write to it.
var unmapped = sync.OnceValue(func() int {
	uids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return -1
	}
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return -1
	}
	return unmappedIn(string(uids), string(overflow))
})

// unmappedIn is unmapped for the content of uid_map and overflowuid.
func unmappedIn(uids, overflow string) int {
	uid, err := strconv.ParseUint(strings.TrimSpace(overflow), 10, 32)
	if err != nil || strings.TrimSpace(uids) == "" {
		return -1
	}
	for line := range strings.Lines(uids) {
		var n [3]uint64 // the first user here, the first one outside, how many
		fields := strings.Fields(line)
		if len(fields) != len(n) {
			return -1
		}
		for i, f := range fields {
			if n[i], err = strconv.ParseUint(f, 10, 32); err != nil {
				return -1
			}
		}
		if n[1] == 0 || n[0] <= uid && uid < n[0]+n[2] {
			return -1
		}
	}
	return int(uid)
}
