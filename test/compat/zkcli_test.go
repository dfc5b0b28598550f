package compat

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// zkCliPath is where Debian's package puts the shell.
const zkCliPath = "/usr/share/zookeeper/bin/zkCli.sh"

// zkCliTimeout bounds a run of the shell.
const zkCliTimeout = 10 * time.Minute

// ZkCli runs zkCli.sh against the server at addr with the commands as its
// input, and returns what it printed on both outputs. The test is skipped where
// it is missing.
func ZkCli(tb testing.TB, addr string, commands ...string) string {
	tb.Helper()
	if _, err := os.Stat(zkCliPath); err != nil {
		harness.SkipOrFail(tb, err.Error())
	}
	const end = "/not/there/end"
	input := strings.Join(commands, "\n") + "\nls " + end + "\nquit\n"
	cmd := exec.Command(zkCliPath, "-timeout", fmt.Sprint(harness.PeerSessionTimeout.Milliseconds()),
		"-server", addr, "-waitforconnection")
	cmd.Env = append(os.Environ(), "CLIENT_JVMFLAGS="+strings.Join(harness.JavaFlags(), " "))
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	proc, err := harness.Start(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), zkCliTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, proc.Kill)()
	err = proc.Wait()
	// Its status is that of the last command but quit, so an error says nothing. Nor does
	// the event of the closed session: the shell can exit before it prints that.
	output, _, ended := strings.Cut(out.String(), "Node does not exist: "+end)
	if !ended {
		tb.Fatalf("zkCli.sh did not come to its end: %v\n%s", err, out.Bytes())
	}
	return output
}

// varying matches what differs from run to run in zkCli.sh's output. An
// ephemeral owner of 0x0 means none, which does not differ.
var varying = regexp.MustCompile(`(?m)^([cmp]Zxid|[cm]time|ephemeralOwner) = (0x[0-9a-f]{2,}|0x[1-9a-f]|[^0].*)$`)

// list matches a list, which may be in any order.
var list = regexp.MustCompile(`(?m)^\[.*\]$`)

// cliNoise matches lines that are not the answer to a command. Those of watches
// come from another thread of the shell, at any place.
var cliNoise = regexp.MustCompile(
	`(?m)^(SLF4J:.*|log4j:.*|Connecting to .*|Welcome to .*|JLine .*|WATCHER::|WatchedEvent .*|\s*)\n`)

// CliTranscript returns the lines of zkCli.sh's output without what differs from
// run to run: zxids, times, session ids, the root below which the commands were,
// and when watches fired.
func CliTranscript(output, root string) []string {
	output = cliNoise.ReplaceAllString(output+"\n", "")
	output = varying.ReplaceAllString(output, "$1 = *")
	output = strings.ReplaceAll(output, root, "ROOT")
	output = list.ReplaceAllStringFunc(output, func(text string) string {
		items := strings.Split(strings.Trim(text, "[]"), ", ")
		slices.Sort(items)
		return "[" + strings.Join(items, ", ") + "]"
	})
	return strings.Split(strings.TrimSpace(output), "\n")
}

// CliTour returns the commands of zkCli.sh that visit the operations of a
// server below root, which must not exist yet.
func CliTour(root string) []string {
	tour := strings.NewReplacer("ROOT", root).Replace(cliTour)
	return strings.Split(strings.TrimSpace(tour), "\n")
}

// One command a line. The watch on ROOT/w fires at its create.
const cliTour = `
create ROOT hello
create ROOT again
create ROOT/no/such x
create -e ROOT/e x
create ROOT/e/child x
create -s ROOT/s- x
create -s -e ROOT/s- x
create -c ROOT/c x
create -t 3600000 ROOT/t x
ls ROOT
ls -s ROOT
ls -R ROOT
get -s ROOT
get -s ROOT/e
get ROOT/missing
stat ROOT/c
stat -w ROOT/w
create ROOT/w
set -s -v 0 ROOT changed
set -v 7 ROOT no
getAcl ROOT
setAcl -s -v 0 ROOT world:anyone:cdrwa
addauth digest user:secret
whoami
create ROOT/mine x auth::cdrwa
getAcl ROOT/mine
getEphemerals ROOT
getAllChildrenNumber ROOT
addWatch -m PERSISTENT ROOT
removewatches ROOT
sync ROOT
delete -v 7 ROOT/c
delete ROOT
deleteall ROOT
ls ROOT
`
