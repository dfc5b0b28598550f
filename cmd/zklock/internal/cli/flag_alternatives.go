package cli

import "github.com/spf13/cobra"

// flagAlternative returns what to use instead of --watch or -o with a command that does not
// have the flag, or "".
func flagAlternative(c *cobra.Command, flag string) string {
	switch flag {
	case "watch", "every":
		return watchAlternative(c.CommandPath())
	case "output", "o", "json":
		return outputAlternative(c.CommandPath())
	}
	return ""
}

// watchAlternative returns what to use instead of --watch.
func watchAlternative(path string) string {
	switch path {
	case "zklock top", "zklock ui":
		return "it is always live"
	case "zklock run", "zklock lock", "zklock revoke", "zklock break":
		return "zklock show --watch follows a lock"
	case "zklock gc":
		return "run it periodically with a timer"
	case "zklock bench", "zklock bench herd":
		return "it measures once; --budget sets for how long"
	case "zklock serve":
		return "zklock doctor --watch follows servers, and --metrics serves metrics for Prometheus"
	case "zklock version", "zklock context ls":
		return "its output does not change"
	}
	return "it is a flag of zklock ls, show, verify, and doctor"
}

// outputAlternative returns what programs use instead of -o.
func outputAlternative(path string) string {
	switch path {
	case "zklock top":
		return "programs use zklock ls --watch -o json"
	case "zklock ui":
		return "the page's URLs return JSON with ?format=json"
	case "zklock run":
		return "--status-fd writes the result as JSON"
	case "zklock context add", "zklock context use", "zklock context rm":
		return "it prints nothing; zklock context ls -o json lists the contexts"
	}
	return ""
}
