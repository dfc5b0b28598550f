//go:build !unix

package process

// permitted is always true: the suffix decides whether a file can be executed.
func permitted(string) bool { return true }

// suffixes returns the suffixes that a name may omit.
func suffixes() []string { return []string{"", ".exe", ".bat", ".cmd", ".com"} }
