package clients

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// transcripts is for whoever looks for the reason of a difference.
var transcripts = flag.String("transcripts", "", "directory to keep what the clients printed in")

// lastLine ends a script that has come to its end.
const lastLine = "end of script"

// failedWord begins the lines in which a script says that what it waited for never
// came.
const failedWord = "FAILED"

// noSweep is longer than any script runs.
const noSweep = time.Hour

// connectionLost is in a line where a request found that its connection was lost. No
// script breaks a connection while it waits for an answer, but a machine that stands
// still does.
var connectionLost = regexp.MustCompile(`(?i)connection ?loss`)

// attempts is how often a script may lose a connection.
const attempts = 3

// contextLines is how much of what both printed stands before a difference.
const contextLines = 3

// Same runs a script against our server and against Apache ZooKeeper at the same
// time, each with a tree of its own, and fails the test unless both print the
// same lines, up to [lastLine]. Both servers look for containers and nodes past
// their time to live once in each sweep; [noSweep] keeps that out of the lines.
func Same(t *testing.T, sweep time.Duration, script func(t *testing.T, addr string) []string) {
	t.Helper()
	var ours, theirs []string
	run := func(t *testing.T, start func(*testing.T, time.Duration) string) (lines []string) {
		for range attempts {
			lines = script(t, start(t, sweep))
			if !slices.ContainsFunc(lines, connectionLost.MatchString) {
				break
			}
			t.Log("a connection was lost")
		}
		return lines
	}
	// The group ends when both of its parallel tests have.
	t.Run("on", func(t *testing.T) {
		t.Run("zkserver", func(t *testing.T) {
			t.Parallel()
			ours = run(t, Ours)
		})
		t.Run("zookeeper", func(t *testing.T) {
			t.Parallel()
			theirs = run(t, Theirs)
		})
	})
	if theirs == nil && !t.Failed() {
		t.Skip("there was no Apache ZooKeeper to compare with")
	}
	for name, lines := range map[string][]string{"zkserver": ours, "zookeeper": theirs} {
		keep(t, name, lines)
		if len(lines) == 0 || lines[len(lines)-1] != lastLine {
			t.Errorf("%s: the script did not come to its end:\n%s", name, strings.Join(lines, "\n"))
		}
	}
	for _, line := range slices.Concat(ours, theirs) {
		if strings.HasPrefix(line, failedWord) {
			t.Error(line)
		}
	}
	for _, text := range differences(ours, theirs) {
		t.Error(text)
	}
	t.Logf("%d lines", len(theirs))
}

// differences describes where two transcripts differ, the first few places. After
// a difference the two are set side by side again at the next line that both
// have.
func differences(ours, theirs []string) []string {
	var found []string
	for len(found) < 10 && (len(ours) > 0 || len(theirs) > 0) {
		same := 0
		for same < len(ours) && same < len(theirs) && ours[same] == theirs[same] {
			same++
		}
		if same == len(ours) && same == len(theirs) {
			break
		}
		before := ours[max(0, same-contextLines):same]
		ours, theirs = ours[same:], theirs[same:]
		i, j := meet(ours, theirs)
		found = append(found, fmt.Sprintf("after\n\t%s\nours:\n\t%s\nZooKeeper's:\n\t%s", strings.Join(before, "\n\t"),
			strings.Join(ours[:i], "\n\t"), strings.Join(theirs[:j], "\n\t")))
		ours, theirs = ours[i:], theirs[j:]
	}
	return found
}

// meet returns the lengths of the shortest beginnings of a and b after which both
// have the same line; all of them if there is none.
func meet(a, b []string) (i, j int) {
	for n := 1; n < len(a)+len(b); n++ {
		for i := max(0, n-len(b)+1); i <= n && i < len(a); i++ {
			if a[i] == b[n-i] {
				return i, n - i
			}
		}
	}
	return len(a), len(b)
}

// sortedList sorts the items of a list as Java and Python print it, "[a, b]", for
// servers may give children in any order.
func sortedList(text string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	items := strings.Split(inner, ", ")
	slices.Sort(items)
	return "[" + strings.Join(items, ", ") + "]"
}

// keep writes a transcript into the directory that -transcripts names, if any.
func keep(t *testing.T, name string, lines []string) {
	t.Helper()
	if *transcripts == "" {
		return
	}
	path := filepath.Join(*transcripts, t.Name()+"."+name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Error(err)
	}
}
