package delivery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// block is a fenced part of a guide.
type block struct {
	line int    // the block's first line in the guide
	lang string // sh, text, go, python, sql, ...
	file string // the name after the language, if the block is a file
	text string
}

// blocks returns the fenced blocks of a guide, in order.
func blocks(guide string) (found []block, err error) {
	var open *block
	n := 0
	for line := range strings.Lines(guide) {
		n++
		fence, info := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case !strings.HasPrefix(line, "```"):
			if open != nil {
				open.text += line
			}
		case open == nil:
			lang, file, _ := strings.Cut(fence, " ")
			open = &block{line: n, lang: lang, file: file}
		case info && fence == "":
			found = append(found, *open)
			open = nil
		default:
			return nil, fmt.Errorf("line %d: a block in a block", n)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: a block that does not end", open.line)
	}
	return found, nil
}

// guideBlocks reads a guide and returns its blocks.
func guideBlocks(t *testing.T, file string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		t.Fatal(err)
	}
	all, err := blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// trimLines removes the spaces around each line, which guides do not show, and the lines
// at the end that are empty.
func trimLines(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n \t"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

func TestCodeBlocksAreParsed(t *testing.T) {
	found, err := blocks("a\n```sh\nx\ny\n```\nb\n```sql a.sql\nz\n```\n")
	want := []block{{2, "sh", "", "x\ny\n"}, {7, "sql", "a.sql", "z\n"}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v", found, err)
	}
	for _, wrong := range []string{"```sh\nx\n", "```sh\n```go\n```\n"} {
		if found, err := blocks(wrong); err == nil {
			t.Errorf("%q has %v", wrong, found)
		}
	}
	if got := trimLines("  1 \nx  \n\n"); got != "1\nx" {
		t.Errorf("%q", got)
	}
}
