package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// debugPort is the port on which the JVM of a server in a network namespace accepts the Java
// Debug Wire Protocol.
const debugPort = "5005"

// ThreadFlags returns the flags of a JVM that lets [Server.Thread] suspend its threads.
// Only one JVM of a network namespace can have them.
func ThreadFlags() []string {
	return []string{"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:" + debugPort}
}

// threadTimeout limits one command, which takes milliseconds.
const threadTimeout = time.Minute

// ErrThread reports that a JVM refused a command.
var ErrThread = errors.New("harness: the JVM refused a command")

// A Thread is one thread of a server's JVM, which a test can suspend while the other threads
// run. It is for one goroutine at a time.
type Thread struct {
	conn net.Conn
	id   []byte
	last uint32 // number of the last command
}

// The commands of the Java Debug Wire Protocol that Thread uses: command set and command.
var (
	jdwpAllThreads = [2]byte{1, 4}
	jdwpName       = [2]byte{11, 1}
	jdwpSuspend    = [2]byte{11, 2}
	jdwpResume     = [2]byte{11, 3}
)

// Thread finds a thread by the prefix of its name, such as "QuorumPeer[", which leads the
// ensemble and sends the pings. The server must run with [ThreadFlags]. Close resumes the thread.
func (n *Server) Thread(name string) (*Thread, error) {
	host, _, err := net.SplitHostPort(n.addr)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, debugPort), threadTimeout)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	t := &Thread{conn: conn}
	if err := t.find(name); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("harness: threads of server %d: %w", n.id, err)
	}
	return t, nil
}

// find performs the handshake and finds the thread.
func (t *Thread) find(name string) error {
	const hello = "JDWP-Handshake"
	answer := make([]byte, len(hello))
	if err := t.conn.SetDeadline(time.Now().Add(threadTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(t.conn, hello); err != nil {
		return err
	}
	if _, err := io.ReadFull(t.conn, answer); err != nil {
		return err
	}
	threads, err := t.command(jdwpAllThreads, nil)
	if err != nil {
		return err
	}
	const idSize = 8 // of HotSpot
	for threads = threads[4:]; len(threads) >= idSize; threads = threads[idSize:] {
		text, err := t.command(jdwpName, threads[:idSize])
		if err == nil && len(text) > 4 && strings.HasPrefix(string(text[4:]), name) {
			t.id = append(t.id, threads[:idSize]...)
			return nil
		}
	}
	return fmt.Errorf("no thread is named %s", name)
}

// Suspend suspends the thread. Each call needs a call of Resume.
func (t *Thread) Suspend() error {
	_, err := t.command(jdwpSuspend, t.id)
	return err
}

// Resume continues the thread.
func (t *Thread) Resume() error {
	_, err := t.command(jdwpResume, t.id)
	return err
}

// Close closes the connection to the JVM, which resumes suspended threads.
func (t *Thread) Close() error { return t.conn.Close() }

// command sends a command, and returns its answer.
func (t *Thread) command(code [2]byte, data []byte) ([]byte, error) {
	const header = 11
	if err := t.conn.SetDeadline(time.Now().Add(threadTimeout)); err != nil {
		return nil, err
	}
	t.last++
	packet := binary.BigEndian.AppendUint32(nil, uint32(header+len(data)))
	packet = binary.BigEndian.AppendUint32(packet, t.last)
	packet = append(packet, 0, code[0], code[1])
	if _, err := t.conn.Write(append(packet, data...)); err != nil {
		return nil, err
	}
	for {
		head := make([]byte, header)
		if _, err := io.ReadFull(t.conn, head); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head)-header)
		if _, err := io.ReadFull(t.conn, body); err != nil {
			return nil, err
		}
		if head[8] != 0x80 || binary.BigEndian.Uint32(head[4:]) != t.last {
			continue // an event of the JVM
		}
		if code := binary.BigEndian.Uint16(head[9:]); code != 0 {
			return nil, fmt.Errorf("%w: error %d", ErrThread, code)
		}
		return body, nil
	}
}
