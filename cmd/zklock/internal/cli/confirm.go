package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Confirmer asks the user to confirm a command.
type Confirmer struct {
	in       io.Reader
	out      io.Writer
	terminal bool // standard input and standard error are terminals
	yes      bool // --yes was given
}

// NewConfirmer returns a Confirmer for the terminal of the command.
func NewConfirmer(yes bool) Confirmer {
	return Confirmer{in: os.Stdin, out: os.Stderr, terminal: term.IsTerminal(0) && term.IsTerminal(2), yes: yes}
}

// Check returns a usage error if there is no terminal and no --yes. It does no I/O.
func (a Confirmer) Check() error {
	if !a.yes && !a.terminal {
		return UsageError("standard input and standard error are not a terminal, so the command cannot ask for confirmation: give --yes")
	}
	return nil
}

// errDeclined ends a command that the user did not confirm. Nothing was done.
var errDeclined = errors.New("nothing was done")

// Confirm asks the question. Every answer except yes means no.
func (a Confirmer) Confirm(question string) error {
	if a.yes {
		return nil
	}
	fmt.Fprintf(a.out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(a.out) // the cursor is after the question
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &ExitError{Code: ExitNo, Err: errDeclined}
}
