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
	inGroup   = "group"   // two in the member's process group
	elsewhere = "outside" // one in its own group, one in its own session
	daemons   = "daemons" // two in their own sessions, whose parents have ended
)

// memberName is the name of the link to this test binary. A process with this name is a
// member.
const memberName = "member"

// runMember runs a member if this process was started as one, and reports whether it was. The
// process then exits with the code.
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
	_ = flags.Parse(os.Args[1:]) // exits on an error
	if err := m.run(began); err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		return 1, true
	}
	return 0, true
}

// memberProcess is a process of a command. It and its children write to the resource
// repeatedly.
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
			_ = c.Process.Kill() // it may have ended
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

// startChildren starts the children. Only a signal or the end of the resource ends them.
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
