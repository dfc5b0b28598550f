//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// bashCompletion is a package that bash may or may not have.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// hostile are names of znodes of an attacker. %s stands for a command that creates a file. The
// test types the first two characters. Two names of each differ only at the end, so the shell
// inserts their common part without quotes.
var hostile = []string{
	"aa<({touch,%s})=b", "bb;{touch,%s}", "cc$({touch,%s})", "dd`{touch,%s}`", "ee|{touch,%s}",
	"ff&{touch,%s}", "gg>%s", "hh'$({touch,%s})", `ii"$({touch,%s})`, "jj\\;{touch,%s}", "kk(touch %s)", "ll ;touch %s",
	"mm#{touch,%s}", "nn:a[$({touch,%s})]", "oo{,;{touch,%s}}", "-pp;{touch,%s}", "qq_activeHelp_ $({touch,%s})", "rr\u202e;{touch,%s}",
	"ss->%s;=",
}

// TestCompletionRunsNothing checks that completion works, and runs no command in a name, in the
// data of an owner, or in a quoted name on the command line.
func TestCompletionRunsNothing(t *testing.T) {
	for name, start := range map[string][]string{
		"bash":            {"bash", "--norc", "--noprofile", "-i"},
		"bash-completion": {"bash", "--norc", "--noprofile", "-i"},
		"fish":            {"fish", "--no-config", "--private"},
		"zsh":             {"zsh", "-f", "-i"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(start[0]); err != nil {
				t.Skip(err)
			}
			srv := zktest.Start(t)
			populate(t, srv.Dial(t))
			s := startShell(t, start, srv.ListenTCP(t))
			switch name {
			case "bash-completion":
				if _, err := os.Stat(bashCompletion); err != nil {
					t.Skip(err)
				}
				s.do("source " + bashCompletion)
				fallthrough
			case "bash":
				s.do("source <(zklock completion bash)")
			case "fish":
				s.do("zklock completion fish | source")
			case "zsh":
				s.do("autoload -Uz compinit; compinit -u -D; source <(zklock completion zsh)")
			}
			s.attack()
		})
	}
}

// populate creates the znodes of the attacker, and one lock to complete.
func populate(t *testing.T, z *zk.Client) {
	t.Helper()
	ctx := context.Background()
	for i, name := range hostile {
		for _, end := range []string{"", "1", "2"} {
			if name[:1] == "-" && end == "" {
				continue
			}
			if err := create(ctx, z, "/zklock/"+fmt.Sprintf(name, fmt.Sprint("node", i))+end, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
		}
	}
	const lock = "/zklock/benign-lock"
	if err := create(ctx, z, lock, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	// Two entries of one transaction have the same token and the same owner.
	owner := []byte(`{"host":"h ({touch,owner1});$({touch,owner2})","pid":7,"version":"zklock 9","command":"x\t$({touch,owner3})\n{touch,owner4}\u001b[2J"}`)
	var ops []zk.Op
	for i := range 2 {
		path := fmt.Sprintf("%s/_c_0000000%d-0000-4000-8000-000000000000-lock-000000000%d", lock, i, i)
		ops = append(ops, zk.CreateOp(path, owner, zk.OpenACL(), zk.ModeEphemeral))
	}
	if _, err := z.Multi(ctx, ops...); err != nil {
		t.Fatal(err)
	}
}

// shell is an interactive shell on a terminal, in its own directory.
type shell struct {
	t    *testing.T
	dir  string
	tty  *os.File
	out  *screen
	done int
}

// startShell starts a shell with completion, until the test ends.
func startShell(t *testing.T, start []string, servers string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), out: &screen{}}
	home := t.TempDir()
	cmd := exec.Command(start[0], start[1:]...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "HISTFILE=/dev/null", "ZKLOCK_HOME=" + filepath.Join(home, "zklock"), "ZKLOCK_SERVERS=" + servers}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	s.tty = tty
	read := make(chan struct{})
	// Ends when the shell has closed the terminal.
	go func() {
		defer close(read)
		_, _ = s.out.readFrom(tty)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
		<-read
	})
	return s
}

// press types keys.
func (s *shell) press(keys string) {
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// do runs a line and waits until it ends.
func (s *shell) do(line string) {
	s.t.Helper()
	s.done++
	file := filepath.Join(s.dir, fmt.Sprintf(".done%d", s.done))
	s.press(line + "\n")
	s.press("echo $HOME >" + filepath.Base(file) + "\n")
	s.await(file, "/")
}

// await waits until a file contains text.
func (s *shell) await(file, text string) {
	s.t.Helper()
	if !poll(func() bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(b), text)
	}) {
		s.t.Fatalf("%s never had %q; on the screen: %q", file, text, s.out.rest())
	}
}

// attack types beginnings of names, and quoted names, and completes them.
func (s *shell) attack() {
	s.t.Helper()
	const clear = "\x05\x15" // move to the end of the line, and delete it
	var lines []string
	for i, name := range hostile {
		beginning, _, _ := strings.Cut(name, "%s")
		lines = append(lines, "show "+name[:2]+"\t\t", "run --lock "+name[:2]+"\t\t")
		if !strings.Contains(beginning, "'") {
			lines = append(lines, "show '"+fmt.Sprintf(name, fmt.Sprint("typed", i))+"' --ou\t\t", "show '"+fmt.Sprintf(name, fmt.Sprint("last", i))+"'\t\t")
		}
	}
	// bash decodes the octal numbers of a variable that the script uses.
	lines = append(lines, `show "\044\050touch\040decoded\051${words[2]@P}" --ou`+"\t\t")
	// zsh evaluates the values of variables as indexes and as patterns.
	for i, use := range []string{"$[x]", "$path[x]", "${path:x}"} {
		lines = append(lines, fmt.Sprintf(`show ${x::=$'psvar[\044\050touch index%d\051]'} %s --ou`+"\t\t", i, use))
	}
	lines = append(lines, `show ${x::=$'*\050e:touch\ pattern:\051'} ${~x} --ou`+"\t\t")
	lines = append(lines, "break benign-lock --token \t\t", "break benign-lock --token \t\t\t", "show -\t\t", "run benign-lock -- sort >redirected \t\t")
	// A file of an attacker, whose name the shell itself completes, in quotes.
	if err := os.WriteFile(filepath.Join(s.dir, ".zz;{touch,file}"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	lines = append(lines, "run benign-lock -- cat .zz\t \t\t")
	for i, line := range lines {
		s.press("zklock " + line + clear)
		if i%4 == 0 {
			s.do("true")
			s.checkUnharmed(line)
		}
	}
	s.do("true")
	s.checkUnharmed("all lines")
	s.press("zklock show ben\t >.shown\n")
	s.await(filepath.Join(s.dir, ".shown"), "holds")
	variable := `"${HOME}"`
	if strings.HasSuffix(s.t.Name(), "fish") {
		variable = `"$HOME"`
	}
	s.press("zklock show " + variable + " --he\t >.helped\n")
	s.await(filepath.Join(s.dir, ".helped"), "Usage")
	s.checkUnharmed("a benign name")
}

// checkUnharmed checks that only commands of the test have run.
func (s *shell) checkUnharmed(after string) {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
	if len(entries) > 0 {
		s.t.Fatalf("at %q at the latest, completion created %v; on the screen: %q", after, entries, s.out.rest())
	}
}
