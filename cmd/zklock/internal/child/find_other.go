//go:build !unix

package child

// permitted is always true: what runs is decided by the suffix.
func permitted(string) bool { return true }

// suffixes are what a name may be short of.
func suffixes() []string { return []string{"", ".exe", ".bat", ".cmd", ".com"} }
