package clients

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// zkCliPath is ZooKeeper's shell in Debian.
const zkCliPath = "/usr/share/zookeeper/bin/zkCli.sh"

// clientTimeout limits a run of any client.
const clientTimeout = 10 * time.Minute

// sessionTimeout is the session timeout of the clients. Sessions must survive a stall of the
// machine.
const sessionTimeout = 30 * time.Second

// cliEvent begins the lines of watch events. Another thread than that of the answers prints them,
// so only their own order is compared.
const cliEvent = "WatchedEvent"

//go:embed script/zkcli.txt
var zkCliScript string

// ZkCli runs the script of zkCli.sh on the server at addr and returns its output, without values
// that differ between runs.
func ZkCli(t *testing.T, addr string) []string {
	t.Helper()
	if _, err := os.Stat(zkCliPath); err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	cmd := exec.Command(zkCliPath, "-timeout", fmt.Sprint(sessionTimeout.Milliseconds()), "-server", addr, "-waitforconnection")
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "CLIENT_JVMFLAGS="+strings.Join(harness.JavaFlags(), " "))
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(zkCliScript, "ADDR", addr))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// The exit code is that of the last command before quit.
	if err := run(t, cmd, clientTimeout); err != nil {
		t.Logf("%s: %v", cmd.Path, err)
	}
	lines := cliLines(out.String(), addr)
	// The last event of a complete script is the end of its session.
	if len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], cliEvent+" state:Closed") {
		lines = append(lines, lastLine)
	}
	return lines
}

// output runs a program and returns its standard output. If the test has failed, it logs the
// program's standard error.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := run(t, cmd, clientTimeout); err != nil {
		t.Errorf("%s: %v", cmd.Path, err)
	}
	if t.Failed() {
		t.Logf("%s", errs.Bytes())
	}
	return out.String()
}

// run runs a program, which it kills after the limit.
func run(t *testing.T, cmd *exec.Cmd, limit time.Duration) error {
	t.Helper()
	proc, err := harness.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	defer context.AfterFunc(ctx, proc.Kill)()
	return proc.Wait()
}

// cliMasks replace values that differ between runs. An ephemeral owner of 0x0 means none.
var cliMasks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(?m)^(SLF4J:.*|log4j:.*|Connecting to .*|Welcome to .*|JLine .*|WATCHER::|\s*)\n`), ""},
	{regexp.MustCompile(`(?m)^([cm]time) = .*$`), "$1 = *"},
	{regexp.MustCompile(`(?m)^ephemeralOwner = 0x[0-9a-f]{2,}$`), "ephemeralOwner = *"},
	{regexp.MustCompile(`(?m)^\d+ - `), "# - "},
}

// cliLines returns the masked lines of zkCli.sh's output: first the answers, then the events.
func cliLines(out, addr string) []string {
	out += "\n"
	for _, mask := range cliMasks {
		out = mask.what.ReplaceAllString(out, mask.by)
	}
	out = strings.ReplaceAll(out, addr, "ADDR")
	out = relativeZxids(out)
	var answers, events []string
	for line := range strings.Lines(strings.TrimSpace(out)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, cliEvent):
			events = append(events, line)
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			answers = append(answers, sortedList(line))
		default:
			answers = append(answers, line)
		}
	}
	sortIdentities(answers)
	return append(answers, events...)
}

// sortIdentities sorts the lines of each answer to whoami, which have the order of a hash table.
func sortIdentities(lines []string) {
	for i, line := range lines {
		if line != "Auth scheme: User" {
			continue
		}
		end := i + 1
		for end < len(lines) && identity.MatchString(lines[end]) {
			end++
		}
		slices.Sort(lines[i+1 : end])
	}
}

// identity matches a line of the answer to whoami.
var identity = regexp.MustCompile(`^\w+: \S*$`)

// zxid matches a transaction id of a Stat. 0x0 is before the first transaction.
var zxid = regexp.MustCompile(`(?m)^([cmp]Zxid = )0x([0-9a-f]{2,}|[1-9a-f])$`)

// relativeZxids makes the transaction ids in out relative to the first one. Servers begin with
// different ids, but use one for each change and each rejected change.
func relativeZxids(out string) string {
	first := int64(-1)
	return zxid.ReplaceAllStringFunc(out, func(line string) string {
		match := zxid.FindStringSubmatch(line)
		id, err := strconv.ParseInt(match[2], 16, 64)
		if err != nil {
			return line // more than 64 bits
		}
		if first < 0 {
			first = id
		}
		return fmt.Sprintf("%s+%d", match[1], id-first)
	})
}

func TestZkCliGetsSameAnswers(t *testing.T) { Same(t, noCollection, ZkCli) }
