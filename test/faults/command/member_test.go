package command

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// every is the pause between two writes.
const every = 3 * time.Millisecond

// The children of a member.
const (
	inGroup   = "group"   // two in its own process group
	elsewhere = "outside" // one in a group of its own, one in a session of its own
	daemons   = "daemons" // two in sessions of their own, whose parents have ended
)

// memberName is the name of the link to this test binary by which it runs as a member.
const memberName = "member"

// runMember reports whether this process was started as a member of a command. If so,
// the member has ended, and the process exits with the code.
func runMember() (code int, is bool) {
	if filepath.Base(os.Args[0]) != memberName {
		return 0, false
	}
	began := Now()
	var m memberProcess
	flags := flag.NewFlagSet(memberName, flag.ExitOnError)
	flags.StringVar(&m.socket, "socket", "", "path of the resource's socket")
	flags.UintVar(&m.trial, "trial", 0, "number of the trial")
	flags.UintVar(&m.nth, "run", 1, "number of the command in the trial")
	flags.UintVar(&m.number, "member", 0, "number in the command")
	flags.IntVar(&m.writes, "writes", 0, "number of writes; 0 for no limit")
	flags.BoolVar(&m.stubborn, "stubborn", false, "ignore TERM")
	flags.StringVar(&m.children, "children", "", "children: group, outside, or daemons")
	flags.BoolVar(&m.stubbornChildren, "stubborn-children", false, "the children ignore TERM")
	_ = flags.Parse(os.Args[1:]) // it exits on an error
	if err := m.run(began); err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		return 1, true
	}
	return 0, true
}

// memberProcess is a process of a command: it writes to the resource again and again,
// by itself and by its children.
type memberProcess struct {
	socket             string
	trial, nth, number uint
	writes             int
	stubborn           bool
	children           string
	stubbornChildren   bool
}

func (m *memberProcess) run(began int64) error {
	if m.stubborn {
		ossignal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	token, err := strconv.ParseInt(os.Getenv("ZKLOCK_TOKEN"), 10, 64)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", m.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	msg := Message{
		Kind: Hello, Run: uint16(m.nth), Member: uint16(m.number), Trial: uint32(m.trial), Token: token, At: began,
	}
	if _, err := msg.Send(conn); err != nil {
		return err
	}
	children, err := m.startChildren()
	if err != nil {
		return err
	}
	// A command that ends by itself kills its children.
	defer func() {
		for _, c := range children {
			_ = c.Process.Kill() // one that has ended is fine
			_ = c.Wait()
		}
	}()
	again := time.NewTicker(every)
	defer again.Stop()
	for n := 0; m.writes == 0 || n < m.writes; n++ {
		msg.Kind, msg.At = Write, Now()
		if _, err := msg.Send(conn); err != nil {
			return err
		}
		<-again.C
	}
	return nil
}

// startChildren starts the children, which end only by a signal or with the resource.
func (m *memberProcess) startChildren() (children []*exec.Cmd, err error) {
	var attrs []*syscall.SysProcAttr
	switch m.children {
	case inGroup:
		attrs = []*syscall.SysProcAttr{nil, nil}
	case elsewhere:
		attrs = []*syscall.SysProcAttr{{Setpgid: true}, {Setsid: true}}
	case daemons:
		attrs = []*syscall.SysProcAttr{{Setsid: true}, {Setsid: true}}
	}
	for i, attr := range attrs {
		args := []string{os.Args[0], "-socket", m.socket, "-trial", fmt.Sprint(m.trial), "-run", fmt.Sprint(m.nth),
			"-member", fmt.Sprint(i + 1), fmt.Sprintf("-stubborn=%t", m.stubborn || m.stubbornChildren)}
		if m.children == daemons {
			args = append([]string{"sh", "-c", `"$@" &`, "sh"}, args...) // the shell ends at once
		}
		c := exec.Command(args[0], args[1:]...)
		c.SysProcAttr = attr
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return children, err
		}
		children = append(children, c)
	}
	return children, nil
}
