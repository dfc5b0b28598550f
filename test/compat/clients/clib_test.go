package clients

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

//go:embed c/script.c
var cScript []byte

//go:embed script/cli_mt.txt
var cliMtScript string

// cliMtPath is the shell of the C library, in Debian's zookeeper-bin.
const cliMtPath = "/usr/lib/zookeeper/bin/cli_mt"

// compileC compiles the script with ZooKeeper's C library and returns the program's path. It skips
// the test if the library or the compiler is missing.
func compileC(t *testing.T) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	if _, err := os.Stat("/usr/include/zookeeper/zookeeper.h"); err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "script.c"), filepath.Join(dir, "script")
	if err := os.WriteFile(source, cScript, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gcc, "-Wall", "-Wextra", "-Werror", "-DTHREADED", "-o", program, source, "-lzookeeper_mt", "-lpthread")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// CliMt runs the script of cli_mt on the server at addr, and returns its output without values that
// differ between runs.
func CliMt(t *testing.T, addr string) []string {
	t.Helper()
	if _, err := os.Stat(cliMtPath); err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	// cli_mt waits for the answer only if its argument is the command.
	var lines []string
	for command := range strings.Lines(cliMtScript) {
		command = strings.TrimSpace(command)
		cmd := exec.Command(cliMtPath, addr, "cmd:"+command)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := run(t, cmd, clientTimeout); err != nil {
			t.Errorf("cli_mt %s: %v", command, err)
		}
		lines = append(lines, "> "+command)
		lines = append(lines, cliMtLines(out.String())...)
	}
	return append(lines, lastLine)
}

// cliMtMasks matches the lines that differ between runs: times, sessions, zxids, and the number of
// answers.
var cliMtMasks = regexp.MustCompile(
	`(?m)^(time = .*|Watcher SESSION_EVENT .*|Got a new session id.*|Batch mode.*|Recvd .*|\s*[cm]time.*|\s*(ephemeralOwner|[cmp]zxid).*)\n`)

// cliMtLines returns the lines of cli_mt's output that do not differ between runs. It sorts the
// names of a list.
func cliMtLines(out string) []string {
	lines := textLines(cliMtMasks.ReplaceAllString(out, ""))
	for begin := 0; begin < len(lines); begin++ {
		end := begin
		for end < len(lines) && strings.HasPrefix(lines[end], "\t") && !strings.Contains(lines[end], "=") {
			end++
		}
		slices.Sort(lines[begin:end])
		begin = end
	}
	return lines
}

func TestCLibraryGetsSameAnswers(t *testing.T) {
	program := compileC(t)
	Same(t, noCollection, func(t *testing.T, addr string) []string { return textLines(output(t, exec.Command(program, addr))) })
}

func TestCliMtGetsSameAnswers(t *testing.T) { Same(t, noCollection, CliMt) }
