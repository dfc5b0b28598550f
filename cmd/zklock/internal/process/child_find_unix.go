//go:build unix

package process

import "golang.org/x/sys/unix"

// permitted asks the kernel, which takes ACLs, mounts, and user ids into account.
func permitted(file string) bool {
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS) == nil
}

// suffixes returns the suffixes that a name may omit.
func suffixes() []string { return []string{""} }
