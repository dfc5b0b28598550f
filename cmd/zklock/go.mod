module github.com/zklock/zklock/cmd/zklock

go 1.26.0

require (
	github.com/creack/pty v1.1.24
	github.com/rogpeppe/go-internal v1.16.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.10
	github.com/zklock/zklock v0.0.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)
