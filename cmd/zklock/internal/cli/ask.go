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

// asker asks somebody whether he means it.
type asker struct {
	in       io.Reader
	out      io.Writer
	terminal bool // somebody is there to answer
	yes      bool // --yes has answered
}

// newAsker asks on the terminal that standard input is.
func newAsker(yes bool) asker {
	return asker{in: os.Stdin, out: os.Stderr, terminal: term.IsTerminal(0) && term.IsTerminal(2), yes: yes}
}

// check refuses to go on where nobody could answer, before any I/O.
func (a asker) check() error {
	if !a.yes && !a.terminal {
		return usage("there is no terminal to ask on: give --yes")
	}
	return nil
}

// errDeclined ends a command whose user said no. Nothing was done.
var errDeclined = errors.New("nothing was done")

// sure asks; anything but yes is no.
func (a asker) sure(question string) error {
	if a.yes {
		return nil
	}
	fmt.Fprintf(a.out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(a.out) // the cursor stands behind the question
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &exitError{exitNo, errDeclined}
}
