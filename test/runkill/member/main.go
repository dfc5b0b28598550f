// Command member is what zklock run runs in the trials of package runkill: it
// writes to a resource again and again, each time with a sign of life, by itself
// and by children of its own.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/zklock/zklock/test/runkill/stamp"
)

// every is the pause between two writes.
const every = 3 * time.Millisecond

// The children that a member can have.
const (
	inGroup   = "group"   // two in its own process group
	elsewhere = "outside" // one in a group of its own, one in a session of its own
	daemons   = "daemons" // two in sessions of their own, whose parents have ended
)

func main() {
	began := stamp.Now()
	var m member
	flag.StringVar(&m.socket, "socket", "", "the resource's")
	flag.UintVar(&m.trial, "trial", 0, "number of the trial")
	flag.UintVar(&m.nth, "run", 1, "number of the command within the trial")
	flag.UintVar(&m.number, "member", 0, "number within the command")
	flag.IntVar(&m.writes, "writes", 0, "how many to make; 0 for ever")
	flag.BoolVar(&m.stubborn, "stubborn", false, "ignore TERM")
	flag.StringVar(&m.children, "children", "", "what children to have: group, outside or daemons")
	flag.BoolVar(&m.stubbornChildren, "stubborn-children", false, "the children ignore TERM")
	flag.Parse()
	if err := m.run(began); err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1)
	}
}

type member struct {
	socket             string
	trial, nth, number uint
	writes             int
	stubborn           bool
	children           string
	stubbornChildren   bool
}

func (m *member) run(began int64) error {
	if m.stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
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
	msg := stamp.Message{
		Kind: stamp.Hello, Run: uint16(m.nth), Member: uint16(m.number), Trial: uint32(m.trial), Token: token, At: began,
	}
	if _, err := msg.Send(conn); err != nil {
		return err
	}
	children, err := m.bear()
	if err != nil {
		return err
	}
	// A command that ends by itself may leave children behind; this one does not.
	defer func() {
		for _, c := range children {
			_ = c.Process.Kill() // one that has ended is fine
			_ = c.Wait()
		}
	}()
	again := time.NewTicker(every)
	defer again.Stop()
	for n := 0; m.writes == 0 || n < m.writes; n++ {
		msg.Kind, msg.At = stamp.Write, stamp.Now()
		if _, err := msg.Send(conn); err != nil {
			return err
		}
		<-again.C
	}
	return nil
}

// bear starts the children, who end only by a signal or with the resource.
func (m *member) bear() (children []*exec.Cmd, err error) {
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
