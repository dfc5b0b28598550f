package delivery

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// A storage is a server that the fencing guide writes to. It starts with the first test that
// uses it, as an unprivileged user, and runs until the tests of this package have ended.
type storage struct {
	word    string // in each block of a guide that uses the storage
	program string // a pattern of the server's path
	client  string // a program that the guide uses, or empty
	// configure writes the server's configuration, if any. It returns the command line that
	// initializes the data folder, or nil, and the command line of the server.
	configure func(s *storage, program string) (initialize, serve []string, err error)
	// use creates an empty storage for a test.
	use func(s *storage, t *testing.T, r *reader)

	once    sync.Once // sets the fields below
	dir     string    // where the server has its data and its socket
	port    int
	used    int // number of tests that have used it
	process *harness.Process
	missing string // a program that is not installed
	err     error
}

var postgres = &storage{
	word: "psql ", client: "psql", program: "/usr/lib/postgresql/*/bin/postgres",
	configure: func(s *storage, program string) (initialize, serve []string, err error) {
		data := filepath.Join(s.dir, "data")
		initdb := filepath.Join(filepath.Dir(program), "initdb")
		return []string{initdb, "--no-sync", "--auth=trust", "--username=zklock", "--pgdata=" + data},
			[]string{program, "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off"}, nil
	},
	use: func(s *storage, t *testing.T, r *reader) {
		t.Helper()
		r.env = append(r.env, "PGHOST="+s.dir, "PGUSER=zklock")
		s.wait(t, r, "psql -Xqc 'DROP DATABASE IF EXISTS bank' postgres")
		r.run(t, r.dir, r.env, "psql", "-Xqc", "CREATE DATABASE bank", "postgres")
	},
}

var mariadb = &storage{
	word: "mariadb ", client: "mariadb", program: "/usr/sbin/mariadbd",
	configure: func(s *storage, program string) (initialize, serve []string, err error) {
		data := "--datadir=" + filepath.Join(s.dir, "data")
		return []string{"mariadb-install-db", "--no-defaults", data, "--skip-test-db", "--auth-root-authentication-method=normal"},
			[]string{program, "--no-defaults", data, "--socket=" + filepath.Join(s.dir, "socket"), "--skip-networking",
				"--pid-file=" + filepath.Join(s.dir, "pid"), "--innodb-flush-log-at-trx-commit=0"}, nil
	},
	use: func(s *storage, t *testing.T, r *reader) {
		t.Helper()
		s.setClient(t, r, "")
		s.wait(t, r, "mariadb -e 'DROP DATABASE IF EXISTS bank'")
		r.run(t, r.dir, r.env, "mariadb", "-e", "CREATE DATABASE bank")
	},
}

// setClient writes the configuration of the reader's client.
func (s *storage) setClient(t *testing.T, r *reader, options string) {
	t.Helper()
	text := fmt.Sprintf("[client]\nsocket=%s\nuser=root\n%s\n", filepath.Join(s.dir, "socket"), options)
	if err := os.WriteFile(filepath.Join(r.dir, ".my.cnf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var objects = &storage{
	word: "from store import", program: "/usr/sbin/lighttpd",
	configure: func(s *storage, program string) (initialize, serve []string, err error) {
		if _, err := os.Stat("/usr/lib/lighttpd/mod_webdav.so"); err != nil {
			s.missing = "mod_webdav of lighttpd"
			return nil, nil, nil
		}
		if s.port, err = harness.FreePort(); err != nil {
			return nil, nil, err
		}
		file := filepath.Join(s.dir, "lighttpd.conf")
		text := fmt.Sprintf(`server.modules = ("mod_webdav")
server.document-root = %q
server.upload-dirs = (%q)
server.bind = "127.0.0.1"
server.port = %d
mimetype.assign = (".json" => "application/json")
webdav.activate = "enable"
`, s.dir, s.dir, s.port)
		return nil, []string{program, "-D", "-f", file}, os.WriteFile(file, []byte(text), 0o644)
	},
	use: func(s *storage, t *testing.T, r *reader) {
		t.Helper()
		s.used++ // a new name, because the server caches files
		r.env = append(r.env, fmt.Sprintf("STORE_URL=http://127.0.0.1:%d/bank-%d.json", s.port, s.used))
		s.wait(t, r, fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", s.port))
	},
}

var storages = []*storage{postgres, mariadb, objects}

// useFor creates an empty storage for a test, and configures the reader's clients.
func (s *storage) useFor(t *testing.T, r *reader) {
	t.Helper()
	s.once.Do(s.start)
	if s.missing != "" {
		harness.SkipOrFail(t, s.missing+" is not installed")
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	s.use(s, t, r)
}

// initializeLimit bounds the initialization of a data folder, which takes seconds.
const initializeLimit = 10 * time.Minute

func (s *storage) start() {
	found, err := filepath.Glob(s.program)
	if err != nil || len(found) == 0 {
		s.missing, s.err = s.program, err
		return
	}
	if _, err := exec.LookPath(s.client); s.client != "" && err != nil {
		s.missing = s.client
		return
	}
	if s.dir, s.err = os.MkdirTemp("", "zklock-"); s.err != nil {
		return
	}
	var attributes *syscall.SysProcAttr
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			s.err = err
			return
		}
		uid, bad := strconv.ParseUint(nobody.Uid, 10, 32)
		gid, wrong := strconv.ParseUint(nobody.Gid, 10, 32)
		if bad != nil || wrong != nil {
			s.err = fmt.Errorf("nobody has the ids %s and %s", nobody.Uid, nobody.Gid)
			return
		}
		attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if s.err = os.Chown(s.dir, int(uid), int(gid)); s.err != nil {
			return
		}
	}
	command := func(ctx context.Context, line []string) *exec.Cmd {
		c := exec.CommandContext(ctx, line[0], line[1:]...)
		c.Dir, c.SysProcAttr = s.dir, attributes
		c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.dir, "LC_ALL=C.UTF-8"}
		return c
	}
	initialize, serve, err := s.configure(s, found[len(found)-1])
	if err != nil || s.missing != "" {
		s.err = err
		return
	}
	if initialize != nil {
		ctx, cancel := context.WithTimeout(context.Background(), initializeLimit)
		defer cancel()
		c := command(ctx, initialize)
		c.WaitDelay = time.Minute // a child may keep the output open
		if out, err := c.CombinedOutput(); err != nil {
			s.err = fmt.Errorf("%s: %w, %w\n%s", initialize[0], err, ctx.Err(), out)
			return
		}
	}
	c := command(context.Background(), serve)
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.err = err
		return
	}
	c.Stdout, c.Stderr = log, log
	s.process, s.err = harness.Start(c)
	_ = log.Close() // the server has its own descriptor
}

// wait waits for the server: it runs a command until the command succeeds.
func (s *storage) wait(t *testing.T, r *reader, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		c := exec.CommandContext(ctx, "bash", "-c", command)
		c.Dir, c.Env = r.dir, r.env
		out, err := c.CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-s.process.Done():
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
			continue
		}
		log, _ := os.ReadFile(filepath.Join(s.dir, "log")) // best effort, for the message
		t.Fatalf("%s: %v: %s\nlog of the server:\n%s", command, err, out, log)
	}
}

// stop ends the server and removes its data.
func (s *storage) stop() error {
	if s.process != nil {
		_ = s.process.Signal(syscall.SIGQUIT) // PostgreSQL ends its children, which are in other process groups
		select {
		case <-s.process.Done():
		case <-time.After(patience):
			s.process.Kill()
		}
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
