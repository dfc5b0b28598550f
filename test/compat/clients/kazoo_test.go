package clients

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

//go:embed script/kazoo_script.py
var kazooScript string

// Kazoo runs the script of kazoo on the server at addr and returns its lines.
func Kazoo(t *testing.T, addr string) []string {
	t.Helper()
	return textLines(output(t, harness.Python(t, "kazoo", "-c", kazooScript, addr)))
}

// textLines splits the output of a program.
func textLines(out string) []string {
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

func TestKazooGetsSameAnswers(t *testing.T) { Same(t, noCollection, Kazoo) }
