package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// testCommands returns commands with text that is difficult in a manual page.
func testCommands() *cobra.Command {
	root := &cobra.Command{Use: "tool", Short: "Does things", Long: "Tool does things.\n\n.It begins with a dot,\n'this with a quote.\n\nA list:\n  a-b   one\n  c\\d   two\nand after it.", Example: "  tool run -x 'a b' # all"}
	run := &cobra.Command{Use: "run NAME [flags]", Short: "Runs - at once", Long: "Run runs.", Run: func(*cobra.Command, []string) {}, GroupID: "g"}
	run.Flags().StringP("file", "f", "a\\b", "read this `file`; ~ and ^ mean themselves")
	run.Flags().Bool("all", false, "take all")
	run.Flags().String("secret", "", "not told")
	run.Flags().Lookup("secret").Hidden = true
	root.AddGroup(&cobra.Group{ID: "g", Title: "Main:"})
	hidden := &cobra.Command{Use: "hide", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(run, hidden, &cobra.Command{Use: "stop", Short: "Stops", GroupID: "g", Run: func(*cobra.Command, []string) {}})
	return root
}

// testGroups returns all flags of a command in one group. The first flag has a variable.
func testGroups(c *cobra.Command) []HelpGroup {
	g := HelpGroup{Title: "Lock"}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			g.Flags = append(g.Flags, Flag{Flag: f, Variable: map[string]string{"file": "TOOL_FILE"}[f.Name]})
		}
	})
	return []HelpGroup{g}
}

func TestPages(t *testing.T) {
	pages := map[string]string{}
	for _, p := range ManualPages(testCommands(), "tool 1", testGroups) {
		pages[p.File] = string(p.Text)
	}
	if len(pages) != 4 || pages["tool-hide.1"] != "" {
		t.Errorf("%d pages", len(pages))
	}
	for file, parts := range map[string][]string{
		"tool.1": {".TH \"TOOL\" 1 \"\" \"tool 1\"", "tool \\- does things", "\\&.It begins", "\\&\\(aqthis", ".nf\n.ft CW\n  a\\-b   one\n  c\\ed   two\n.ft R\n.fi\nand after it.",
			".SS \"Main\"\n.TP\n.BR tool\\-run (1)\nRuns \\- at once", "EXAMPLES"},
		"tool-run.1": {".B tool run\nNAME [flags]", "\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIfile\\fR\nread this file; \\(ti and \\(ha mean themselves (default a\\eb)\n.br\nEnvironment: TOOL_FILE\n", ".SS \"Lock\"\n.TP\n", "\\-\\-all\\fR\ntake all\n", "SEE ALSO\n.BR tool (1),\n.BR tool\\-stop (1)"},
	} {
		for _, part := range parts {
			if !strings.Contains(pages[file], part) {
				t.Errorf("%s has no %q:\n%s", file, part, pages[file])
			}
		}
	}
	if strings.Contains(pages["tool-run.1"], "secret") {
		t.Error("a hidden flag is shown")
	}
}

// TestGroffHasNoWarnings checks that groff accepts the manual pages.
func TestGroffHasNoWarnings(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	for _, p := range ManualPages(testCommands(), "tool 1", testGroups) {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
		cmd.Stdin = bytes.NewReader(p.Text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", p.File, err, out)
		}
	}
}
