package cli

import "github.com/spf13/cobra"

// insteadOf says what there is for those who look for --watch or -o at a command that has
// it not; "" if there is nothing to say.
func insteadOf(c *cobra.Command, flag string) string {
	switch flag {
	case "watch", "every":
		return insteadOfWatch(c.CommandPath())
	case "output", "o", "json":
		return insteadOfOutput(c.CommandPath())
	}
	return ""
}

// insteadOfWatch is what follows things where a command looks once.
func insteadOfWatch(path string) string {
	switch path {
	case "zklock top", "zklock ui":
		return "it is live by itself"
	case "zklock run", "zklock lock", "zklock revoke", "zklock break":
		return "zklock show --watch follows a lock"
	case "zklock gc":
		return "what is left behind changes slowly: let a timer run it now and then"
	case "zklock bench", "zklock bench herd":
		return "it measures once; --budget says for how long"
	case "zklock serve":
		return "zklock doctor --watch follows servers, and --metrics gives figures to Prometheus"
	case "zklock version", "zklock context ls":
		return "there is nothing to follow"
	}
	return "it is a flag of zklock ls, show, verify and doctor"
}

// insteadOfOutput is what is for programs where a command prints nothing to read.
func insteadOfOutput(path string) string {
	switch path {
	case "zklock top":
		return "for programs there is zklock ls --watch -o json"
	case "zklock ui":
		return "the page's addresses answer programs with JSON: add ?format=json"
	case "zklock run":
		return "--status-fd tells programs how it went, as JSON"
	case "zklock context add", "zklock context use", "zklock context rm":
		return "it prints nothing; zklock context ls -o json tells programs of contexts"
	}
	return ""
}
