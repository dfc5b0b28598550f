package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/internal/legible"
)

// serveLocal runs the local server. In the background, its third descriptor is a pipe to
// the command that started it. In the foreground there is no pipe.
func (f *serveFlags) serveLocal() error {
	const pipe = 3
	process.CloseInherited(pipe)
	ready := os.NewFile(pipe, "ready")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP)
	return local.Serve(ctx, local.Place{Dir: f.local}, f.idle.D, func(word string) {
		// The command that started this process may have ended, or there is none.
		_, _ = fmt.Fprintln(ready, strings.ReplaceAll(word, "\n", "; "))
		_ = ready.Close()
	})
}

// localView is the state of the local server in JSON.
type localView struct {
	Directory string      `json:"directory"`
	Running   bool        `json:"running"`
	PID       int         `json:"pid,omitempty"`
	Socket    string      `json:"socket,omitempty"`
	Sessions  json.Number `json:"sessions,omitempty"`
}

// showLocal prints the state of the local server.
func (f *serveFlags) showLocal() error {
	p, err := local.Own()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTime)
	defer cancel()
	st, err := p.Status(ctx)
	if err != nil && !errors.Is(err, local.ErrNotRunning) {
		return err
	}
	v := localView{Directory: st.Dir}
	if err == nil {
		v = runningView(st)
	}
	return f.out.Write(os.Stdout, cli.Result{
		Table: v.print,
		Names: func() []string {
			if !v.Running {
				return nil
			}
			return []string{v.Socket}
		},
		Data: func() []any { return []any{v} },
	})
}

// runningView returns the state of a running server. A server of another version may not
// report its number of sessions, which is then omitted.
func runningView(st local.Status) localView {
	v := localView{Directory: st.Dir, Running: true, PID: st.PID, Socket: st.Socket}
	if _, err := strconv.ParseUint(st.Sessions, 10, 64); err == nil {
		v.Sessions = json.Number(st.Sessions)
	}
	return v
}

// print writes the state as text.
func (v localView) print(out io.Writer) error {
	text := "directory: " + legible.Name(v.Directory) + "\n"
	if v.Running {
		text += fmt.Sprintf("running:   yes, process %d\nsocket:    %s\nsessions:  %s\n", v.PID, legible.Name(v.Socket), cmp.Or(v.Sessions, "not told"))
	} else {
		text += "running:   no; the next command that needs it starts it\n"
	}
	_, err := fmt.Fprintln(out, text+"Each user has a separate local server: locks of different users do not\nexclude each other.")
	return err
}

// stopLocal stops the local server.
func (f *serveFlags) stopLocal() error {
	p, err := local.Own()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTime)
	defer cancel()
	err = p.Stop(ctx)
	if errors.Is(err, local.ErrNotRunning) {
		fmt.Println("the local server was not running")
		return nil
	}
	if err == nil {
		fmt.Println("stopped; holds last until their deadlines, unless a command starts the server again")
	}
	return err
}
