package guides

import (
	"slices"
	"testing"
)

// TestBlocks: what is fenced is found, and what is fenced wrongly is too.
func TestBlocks(t *testing.T) {
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
	if got := said("  1 \nx  \n\n"); got != "1\nx" {
		t.Errorf("%q", got)
	}
}
