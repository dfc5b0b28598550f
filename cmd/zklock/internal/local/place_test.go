//go:build unix

package local

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience limits the waits of a test.
const patience = 2 * time.Minute

// running is a server in this process.
type running struct {
	place Place
	stop  context.CancelFunc
	ended chan error
}

// serve starts a server and waits until it accepts clients.
func serve(t *testing.T, dir string, idle time.Duration) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{place: Place{Dir: dir}, stop: stop, ended: make(chan error, 1)}
	ready := make(chan string, 1)
	go func() { r.ended <- Serve(ctx, r.place, idle, func(w string) { ready <- w }) }()
	if word := <-ready; word != wordReady {
		t.Fatalf("the server said %q", word)
	}
	t.Cleanup(func() {
		stop()
		r.wait(t)
	})
	return r
}

// wait waits until the server has ended.
func (r *running) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
		r.ended <- nil
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
}

// home700 returns a directory like those of Prepare.
func home700(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "h")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestServeAndConnect(t *testing.T) {
	dir := home700(t)
	r := serve(t, dir, time.Hour)
	conn, err := r.place.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	st, err := r.place.Status(t.Context())
	if err != nil || st.PID != os.Getpid() || st.Sessions != "0" || st.Socket != filepath.Join(dir, "sock") {
		t.Errorf("status %+v, %v", st, err)
	}
	if !r.place.Owns("unix:"+st.Socket) || r.place.Owns("unix:/other") {
		t.Error("the place does not know its own address")
	}
	r.stop()
	r.wait(t)
	if _, err := r.place.Connect(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stopped server gives %v", err)
	}
	if err := r.place.Stop(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("stopping it again gives %v", err)
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	r := serve(t, home700(t), time.Hour)
	var word string
	err := Serve(t.Context(), r.place, time.Hour, func(w string) { word = w })
	if !errors.Is(err, errBusy) || word != wordBusy {
		t.Errorf("a second server reported %q and ended with %v", word, err)
	}
	if _, err := r.place.Connect(t.Context()); err != nil {
		t.Errorf("the first server failed: %v", err)
	}
}

func TestIdleServerEnds(t *testing.T) {
	r := serve(t, home700(t), 50*time.Millisecond)
	r.wait(t)
}

func TestServerEndsIfLockFileIsRemoved(t *testing.T) {
	r := serve(t, home700(t), time.Hour)
	if err := os.Remove(r.place.lockFile()); err != nil {
		t.Fatal(err)
	}
	r.wait(t)
}

func TestRemovedSocketIsCreatedAgain(t *testing.T) {
	r := serve(t, home700(t), time.Hour)
	if err := os.Remove(r.place.Socket()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		conn, err := r.place.Connect(ctx)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the socket was not created again: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestLongPathUsesOtherSocket(t *testing.T) {
	dir := filepath.Join(home700(t), strings.Repeat("x", 120))
	r := serve(t, dir, time.Hour)
	socket := r.place.Socket()
	if len(socket) > maxSocket || strings.HasPrefix(socket, dir) {
		t.Errorf("the socket is at %s", socket)
	}
	r.stop()
	r.wait(t)
	r = serve(t, dir, time.Hour)
	if again := r.place.Socket(); again != socket {
		t.Errorf("the socket moved from %s to %s", socket, again)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(socket)) })
}

// TestRelativeTMPDIRIsNotUsed: commands with another working directory could not connect.
func TestRelativeTMPDIRIsNotUsed(t *testing.T) {
	t.Chdir(home700(t))
	t.Setenv("TMPDIR", ".")
	dir := filepath.Join(home700(t), strings.Repeat("x", 120))
	// An earlier version can have used such a path.
	old := filepath.Join("zklock-1", socketName)
	earlier := &serving{place: Place{Dir: dir}}
	if err := errors.Join(os.Mkdir(filepath.Dir(old), 0o700), os.Mkdir(dir, 0o700), earlier.announce(old)); err != nil {
		t.Fatal(err)
	}
	r := serve(t, dir, time.Hour)
	socket := r.place.Socket()
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(socket)) })
	if !filepath.IsAbs(socket) {
		t.Errorf("the socket is at %s", socket)
	}
}

// TestLongPathFollowsNoLinkOfAnotherUser: the directory of the socket was deleted, and another
// user creates a link in its place to the directory of another server of this user.
func TestLongPathFollowsNoLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a link another user's")
	}
	long := serve(t, filepath.Join(home700(t), strings.Repeat("x", 120)), time.Hour)
	socket := long.place.Socket()
	long.stop()
	long.wait(t)
	other := serve(t, home700(t), time.Hour)
	before, err := os.Stat(other.place.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Dir(socket)),
		os.Symlink(other.place.Dir, filepath.Dir(socket)), os.Lchown(filepath.Dir(socket), 12345, -1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Dir(socket)) })
	if conn, err := long.place.Connect(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("connecting gave %v, %v", conn, err)
	}
	again := serve(t, long.place.Dir, time.Hour)
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(again.place.Socket())) })
	if now := again.place.Socket(); now == socket {
		t.Errorf("the socket is at %s again", now)
	}
	if after, err := os.Stat(other.place.Socket()); err != nil || !os.SameFile(before, after) {
		t.Errorf("the other server's socket was replaced: %v", err)
	}
}

// TestNamedSocketOfAnotherUserIsRefused: a command under zklock run has the path of a socket.
// /tmp is cleaned, and another user creates the directory again and listens there.
func TestNamedSocketOfAnotherUserIsRefused(t *testing.T) {
	r := serve(t, filepath.Join(home700(t), strings.Repeat("x", 120)), time.Hour)
	socket := r.place.Socket()
	dir := filepath.Dir(socket)
	t.Cleanup(func() { os.RemoveAll(dir) })
	dial := func(want error) {
		t.Helper()
		conn, err := DialNamed(t.Context(), "unix", socket)
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("connecting gave %v, want %v", err, want)
		}
	}
	dial(nil)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	dial(ErrUnavailable)
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a directory another user's")
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	dial(ErrUnavailable)
	if err := errors.Join(os.Chown(dir, 0, -1), os.Rename(dir, dir+"-moved"), os.Symlink(dir+"-moved", dir), os.Lchown(dir, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir + "-moved") })
	dial(ErrUnavailable)
}

// TestNamedSocketsOfServersMayHaveOtherOwners: zklock serve may run as another user, for a group.
func TestNamedSocketsOfServersMayHaveOtherOwners(t *testing.T) {
	for path, want := range map[string]bool{
		"/tmp/zklock-123/sock": true, "/tmp/a/zklock-1/sock": true, "/run/zklock/sock": false, "/run/zklock.sock": false,
		"/tmp/zklock-123/other": false, "/tmp/zklock-/sock": false, "/tmp/zklock-1a/sock": false, "": false,
	} {
		if temporary(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := DialNamed(t.Context(), "unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestForeignFiles(t *testing.T) {
	p := Place{Dir: home700(t)}
	if p.PID() != 0 || p.Socket() != "" || p.Owns("unix:") {
		t.Error("an empty place has a server")
	}
	for _, text := range []string{"", "x\n", "-5\n", "1\n", strings.Repeat("9", 10000)} {
		if err := os.WriteFile(p.lockFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid := p.PID(); pid != 0 {
			t.Errorf("%.10q is process %d", text, pid)
		}
	}
	if err := os.WriteFile(p.socketFile(), []byte(filepath.Join(p.Dir, "nothing")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Connect(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a socket that is not there gives %v", err)
	}
}

// program returns the Exe of a Dialer for a program.
func program(path string) func() (string, error) {
	return func() (string, error) { return path, nil }
}

// TestPrepareIgnoresUmask checks that later commands can use what a command with a strict umask
// creates.
func TestPrepareIgnoresUmask(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b", "zklock")
	old := syscall.Umask(0o777)
	err := Prepare(dir)
	var log *os.File
	if err == nil {
		log, err = openLog(filepath.Join(dir, "log"))
	}
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
	for path, want := range map[string]os.FileMode{filepath.Join(top, "a"): 0o700, filepath.Join(top, "a", "b"): 0o700, dir: 0o700, log.Name(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

// TestPrivateFollowsNoLinkThatAppears: the link of another user leads to a private directory of
// this user, and the other user makes and removes it while Private runs.
func TestPrivateFollowsNoLinkThatAppears(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to make a link of another user")
	}
	top, private := t.TempDir(), home700(t)
	link, aside := filepath.Join(top, "home"), filepath.Join(top, "aside")
	if err := errors.Join(os.Symlink(private, aside), os.Lchown(aside, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends when the test closes stop
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = os.Rename(aside, link), os.Rename(link, aside)
			}
		}
	}()
	defer func() {
		close(stop)
		<-ended
	}()
	refused := false
	for i := 0; i < 20_000 || i < 1_000_000 && !refused; i++ {
		err := Private(link)
		if err == nil {
			t.Fatalf("after %d calls, the link was followed", i)
		}
		refused = refused || !errors.Is(err, fs.ErrNotExist)
	}
	if !refused {
		t.Error("Private never saw the link")
	}
}

// TestPipesAreNotWaitedFor checks a named pipe in place of the log, and of the lock file.
func TestPipesAreNotWaitedFor(t *testing.T) {
	dial := func(p Place) error {
		_, err := (&Dialer{Place: p, Exe: program("/bin/false")}).DialContext(t.Context(), "", "")
		return err
	}
	stop := func(p Place) error { return p.Stop(t.Context()) }
	for _, tt := range []struct {
		name string
		do   func(Place) error
		want error
	}{{"log", dial, ErrUnavailable}, {"lock", stop, ErrNotRunning}} {
		p := Place{Dir: home700(t)}
		if err := syscall.Mkfifo(filepath.Join(p.Dir, tt.name), 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- tt.do(p) }() // ends with the call, or with the process if it waits
		select {
		case err := <-done:
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the pipe is waited for", tt.name)
		}
	}
}

func TestDialerReturnsErrorOfServer(t *testing.T) {
	tests := []struct{ script, want string }{
		{"echo 'the disk is full' >&3", "the disk is full"},
		{"exit 1", "the server ended while it started"},
	}
	for _, tt := range tests {
		exe := filepath.Join(t.TempDir(), "server")
		if err := os.WriteFile(exe, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		d := Dialer{Place: Place{Dir: home700(t)}, Exe: program(exe)}
		_, err := d.DialContext(t.Context(), "", "")
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.script, err, tt.want)
		}
	}
}

func TestDialerFailsIfServerIsBusy(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\necho busy >&3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // in which the server starts
	defer cancel()
	d := Dialer{Place: Place{Dir: home700(t)}, Exe: program(exe)}
	_, err := d.DialContext(ctx, "", "")
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBusy) && !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestPeer(t *testing.T) {
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := samePeer(conn); err != nil {
		t.Errorf("our own process is refused: %v", err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := samePeer(a); err == nil {
		t.Error("a pipe has a user")
	}
}

func TestCounter(t *testing.T) {
	answer := "zk_version\t3\nzk_global_sessions\t12\n"
	if got := counter(answer, "zk_global_sessions"); got != "12" {
		t.Errorf("got %q, want 12", got)
	}
	if got := counter(answer, "zk_global"); got != "?" {
		t.Errorf("a missing counter is %q", got)
	}
}
