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

// transcripts helps to find the reason of a difference.
var transcripts = flag.String("transcripts", "", "directory for the output of the clients")

// lastLine is the last line of a complete script.
const lastLine = "end of script"

// failedWord begins the lines in which a script reports that an expected event did not occur.
const failedWord = "FAILED"

// noCollection is a check interval that is longer than any script runs.
const noCollection = time.Hour

// connectionLost matches a line of a request that lost its connection. A stall of the machine can
// cause this, and no script does.
var connectionLost = regexp.MustCompile(`(?i)connection ?loss`)

// attempts limits the runs of a script that loses a connection.
const attempts = 3

// contextLines is the number of common lines before a difference.
const contextLines = 3

// Same runs a script on the embedded server and on Apache ZooKeeper at the same time, and fails the
// test unless both print the same lines, up to [lastLine]. Both servers check for empty containers
// and expired nodes at the interval.
func Same(t *testing.T, interval time.Duration, script func(t *testing.T, addr string) []string) {
	t.Helper()
	var ours, theirs []string
	run := func(t *testing.T, start func(*testing.T, time.Duration) string) (lines []string) {
		for range attempts {
			lines = script(t, start(t, interval))
			if !slices.ContainsFunc(lines, connectionLost.MatchString) {
				break
			}
			t.Log("a connection was lost")
		}
		return lines
	}
	// t.Run returns when both parallel tests have ended.
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
		saveTranscript(t, name, lines)
		if len(lines) == 0 || lines[len(lines)-1] != lastLine {
			t.Errorf("%s: the script did not complete:\n%s", name, strings.Join(lines, "\n"))
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

// differences describes the first differences of two transcripts. After a difference, it continues
// at the next common line.
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
		i, j := nextCommon(ours, theirs)
		found = append(found, fmt.Sprintf("after\n\t%s\nours:\n\t%s\nZooKeeper's:\n\t%s", strings.Join(before, "\n\t"),
			strings.Join(ours[:i], "\n\t"), strings.Join(theirs[:j], "\n\t")))
		ours, theirs = ours[i:], theirs[j:]
	}
	return found
}

// nextCommon returns the shortest prefixes of a and b after which both have the same line, or the
// whole lengths.
func nextCommon(a, b []string) (i, j int) {
	for n := 1; n < len(a)+len(b); n++ {
		for i := max(0, n-len(b)+1); i <= n && i < len(a); i++ {
			if a[i] == b[n-i] {
				return i, n - i
			}
		}
	}
	return len(a), len(b)
}

// sortedList sorts the items of a list in the format of Java and Python, "[a, b]", because servers
// list children in any order.
func sortedList(text string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	items := strings.Split(inner, ", ")
	slices.Sort(items)
	return "[" + strings.Join(items, ", ") + "]"
}

// saveTranscript writes a transcript into the directory of -transcripts, if any.
func saveTranscript(t *testing.T, name string, lines []string) {
	t.Helper()
	if *transcripts == "" {
		return
	}
	path := filepath.Join(*transcripts, t.Name()+"."+name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Error(err)
	}
}
