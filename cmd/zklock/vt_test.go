//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// A vt is a simple terminal for zklock top and a shell. It has the text that the screen shows.
type vt struct {
	mu            sync.Mutex
	width, height int
	rows          [][]rune // 0 after a character of two columns
	main          [][]rune // the screen below the alternate screen; nil without one
	mainX, mainY  int
	x, y          int
	pending       []byte // an incomplete sequence
	colored       bool   // the alternate screen had a color
	overflown     string // a row that was too long for the alternate screen
	cut           bool   // a row that is too long is cut, and does not wrap
}

func newVT(width, height int) *vt {
	v := &vt{}
	v.resize(width, height)
	return v
}

// resize changes the size and clears the screen.
func (v *vt) resize(width, height int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.width, v.height = width, height
	v.rows, v.x, v.y = v.empty(), 0, 0
	if v.main != nil {
		v.main = v.empty()
	}
}

func (v *vt) empty() [][]rune {
	rows := make([][]rune, v.height)
	for i := range rows {
		rows[i] = []rune(strings.Repeat(" ", v.width))
	}
	return rows
}

// Write processes the output of a program.
func (v *vt) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending = append(v.pending, b...)
	for len(v.pending) > 0 {
		n := v.take(v.pending)
		if n == 0 {
			break
		}
		v.pending = v.pending[n:]
	}
	return len(b), nil
}

// csi matches a control sequence.
var csi = regexp.MustCompile(`^\x1b\[([?>=]?)([0-9;]*)([@-~])`)

// take processes one character or sequence, and returns its length, or 0 if it is incomplete.
func (v *vt) take(b []byte) int {
	switch b[0] {
	case '\r':
		v.x = 0
		return 1
	case '\n':
		v.down()
		return 1
	case '\b':
		v.x = max(0, v.x-1)
		return 1
	case 0x1b:
		m := csi.FindSubmatch(b)
		if m == nil {
			if len(b) > 40 || len(b) > 1 && b[1] != '[' {
				return 2 // ignored
			}
			return 0
		}
		v.control(string(m[1])+string(m[3]), string(m[2]))
		return len(m[0])
	}
	if b[0] < ' ' {
		return 1
	}
	if !utf8.FullRune(b) {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	v.put(r)
	return n
}

// put shows a character.
func (v *vt) put(r rune) {
	n := cli.Columns(string(r))
	if v.x+n > v.width {
		if v.main != nil && v.overflown == "" {
			v.overflown = string(v.rows[v.y]) + string(r)
		}
		if v.x = v.width - n; !v.cut {
			v.x = 0
			v.down()
		}
	}
	if n > 0 {
		v.rows[v.y][v.x] = r
	}
	if n == 2 {
		v.rows[v.y][v.x+1] = 0
	}
	v.x += n
}

// down moves the cursor down, and scrolls in the last row.
func (v *vt) down() {
	if v.y < v.height-1 {
		v.y++
		return
	}
	if v.main != nil && v.overflown == "" {
		v.overflown = "scrolled"
	}
	v.rows = append(v.rows[1:], []rune(strings.Repeat(" ", v.width)))
}

// control executes a control sequence.
func (v *vt) control(kind, args string) {
	var n []int
	for part := range strings.SplitSeq(args, ";") {
		i, _ := strconv.Atoi(part) // an empty part is 0
		n = append(n, i)
	}
	switch kind {
	case "H":
		n = append(n, 0)
		v.y, v.x = min(max(n[0], 1), v.height)-1, min(max(n[1], 1), v.width)-1
	case "J":
		if n[0] == 2 {
			v.rows = v.empty()
		}
	case "K":
		from := v.x
		if n[0] == 2 {
			from = 0
		}
		for i := from; i < v.width; i++ {
			v.rows[v.y][i] = ' '
		}
	case "m":
		for _, code := range n {
			v.colored = v.colored || v.main != nil && (code >= 30 && code <= 49 && code != 39 && code != 49 || code >= 90)
		}
	case "?h":
		v.cut = v.cut && args != "7"
		if args == "1049" && v.main == nil {
			v.main, v.rows, v.colored = v.rows, v.empty(), false
			v.mainX, v.mainY = v.x, v.y
		}
	case "?l":
		v.cut = v.cut || args == "7"
		if args == "1049" && v.main != nil {
			v.rows, v.main = v.main, nil
			v.x, v.y = min(v.mainX, v.width-1), min(v.mainY, v.height-1)
		}
	}
}

// text returns the text on the screen.
func (v *vt) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, row := range v.rows {
		b.WriteString(strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " ") + "\n")
	}
	return b.String()
}

// screens runs an interactive shell on a terminal of 80x24 with a dialogue. Its lines are
//
//	> text          to type, with a line end
//	>> keys         to type as they are, with Go's escapes
//	< regexp        to wait for on the screen; ^ and $ match at lines
//	! regexp        must not be on the screen now
//	size C R        to change the terminal's size
//	touch FILE      to signal a process that waits for it
//	color yes|no    whether the program has used colors
//
// A row that is too long for the screen ends the test.
//
//	screens DIALOGUE
func screens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: screens DIALOGUE")
	}
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"PATH", "HOME", "WORK", "ZKLOCK_HOME", "ZKLOCK_IDLE", "NO_COLOR", "LANG"} {
		if value := ts.Getenv(key); value != "" {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, "TERM=vt100", "PS1=ready> ", "HISTFILE=/dev/null")
	caught := make(chan os.Signal, 1) // see terminal
	signal.Notify(caught, syscall.SIGINT, syscall.SIGQUIT)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	signal.Stop(caught)
	ts.Check(err)
	v := newVT(80, 24)
	read := make(chan struct{})
	// Ends when the shell has closed the terminal.
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			_, _ = v.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	ended := make(chan error, 1)
	// Ends with the shell.
	go func() { ended <- cmd.Wait() }()
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if err := v.follow(tty, strings.TrimRight(line, "\n"), ts.MkAbs); err != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			ts.Fatalf("%s: %v; the screen:\n%s", strings.TrimSpace(line), err, v.text())
		}
	}
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("the shell did not end; on the screen:\n%s", v.text())
	}
	_ = tty.Close()
	<-read
	if v.cut {
		ts.Fatalf("the lines of the terminal no longer wrap")
	}
}

// follow executes one line of a dialogue.
func (v *vt) follow(tty *os.File, line string, file func(string) string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "":
		return nil
	case ">":
		_, err := tty.WriteString(rest + "\n")
		return err
	case ">>":
		keys, err := strconv.Unquote(`"` + rest + `"`)
		if err == nil {
			_, err = tty.WriteString(keys)
		}
		return err
	case "<", "!":
		re, err := regexp.Compile("(?m)" + rest)
		switch {
		case err != nil:
			return err
		case word == "!" && re.MatchString(v.text()):
			return fmt.Errorf("found")
		case word == "<" && !poll(func() bool { return re.MatchString(v.text()) }):
			return fmt.Errorf("not found")
		}
	case "size":
		var size pty.Winsize
		if _, err := fmt.Sscan(rest, &size.Cols, &size.Rows); err != nil {
			return err
		}
		v.resize(int(size.Cols), int(size.Rows))
		return pty.Setsize(tty, &size)
	case "touch":
		return os.WriteFile(file(rest), nil, 0o600)
	case "color":
	default:
		return fmt.Errorf("unknown word in a dialogue")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if word == "color" && v.colored != (rest == "yes") {
		return fmt.Errorf("colors were seen: %v", v.colored)
	}
	if v.overflown != "" {
		return fmt.Errorf("a row is too long: %s", v.overflown)
	}
	return nil
}
