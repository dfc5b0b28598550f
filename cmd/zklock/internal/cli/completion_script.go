package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// completionHelp is for the command that prints the scripts.
const completionHelp = `Completion generates a script for a shell. The script completes commands,
flags, their values, and the names of contexts and locks. For lock names it
asks the servers of the command line, the environment, or the current context.
It waits at most one second and never starts a local server.

It completes only names that consist of letters, digits, and . _ / @ % + = -,
because every client that can create a znode chooses its name. Type other names
in quotes.`

const completionExample = `  source <(zklock completion bash)                    # in this shell
  zklock completion bash > /etc/bash_completion.d/zklock
  zklock completion zsh > "${fpath[1]}/_zklock"
  zklock completion fish > ~/.config/fish/completions/zklock.fish
  zklock completion powershell | Out-String | Invoke-Expression`

// addCompletion adds the command that prints the scripts. They are cobra's, changed so
// that they evaluate nothing that could run a command.
func (a *app) addCompletion(root *cobra.Command) {
	var script bytes.Buffer // what cobra's commands print
	root.SetOut(&script)
	root.InitDefaultCompletionCmd()
	root.SetOut(os.Stdout)
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	c.Short, c.Long, c.Example = "Generate a shell completion script", completionHelp, completionExample
	c.Args, c.RunE = subcommand("for which shell", "zklock completion bash, zsh, fish or powershell")
	for _, sub := range c.Commands() {
		sub.Short = "Generate the completion script for " + sub.Name()
		sub.Long = "Prints the completion script for " + sub.Name() + ".\nThe help of zklock completion shows how to load it."
		sub.Example = "  zklock completion " + sub.Name()
		generate := sub.RunE
		sub.RunE = func(c *cobra.Command, args []string) error {
			if err := generate(c, args); err != nil {
				return err
			}
			text, err := harmless(sub.Name(), script.String())
			if err != nil {
				return err
			}
			_, err = os.Stdout.WriteString(text)
			return err
		}
	}
}

// A change replaces text that is in a script once.
type change struct{ old, new string }

// changes are what cobra's scripts lack. Each evaluates the line so far, as typed, on
// every press of the key, and fish without the quotes. A line with characters that can
// run a command or open a file completes names of files only; fish needs no evaluation.
var changes = map[string][]change{
	"bash": {{
		`    out=$(eval "${requestComp}" 2>/dev/null)`,
		`    # Unless it could run something else.
    [[ ${requestComp} == *[` + "\\`" + `\;\|\&\<\>\(\)$'\n']* ]] || out=$(eval "${requestComp}" 2>/dev/null)`,
	}},
	"zsh": {{
		`    out=$(eval ${requestComp} 2>/dev/null)`,
		`    # Unless it could run something else.
    if [[ ${requestComp} == *[` + "\\`" + `\;\|\&\<\>\(\)]* ]]; then
        _files
        return
    fi
    out=$(eval ${requestComp} 2>/dev/null)`,
	}},
	"fish": {{
		`    set -l lastArg (string escape -- (commandline -ct))`,
		`    set -l typed (commandline -ct)
    set -l lastArg (string escape -- $typed)`,
	}, {
		`    set -l results (eval $requestComp 2> /dev/null)`,
		`    set -l results ($args[1] __complete $args[2..-1] "$typed" 2> /dev/null)`,
	}},
	"powershell": {{
		`    __zklock_debug "Calling $RequestComp"`,
		`    # Evaluate nothing that could run something else.
    if ($RequestComp -match '[;|&<>(){}` + "`" + `\n]') { return }
    __zklock_debug "Calling $RequestComp"`,
	}},
}

// harmless returns the script for a shell with its changes.
func harmless(shell, script string) (string, error) {
	for _, c := range changes[shell] {
		if strings.Count(script, c.old) != 1 {
			return "", fmt.Errorf("the script for %s has no single line %q", shell, strings.TrimSpace(c.old))
		}
		script = strings.Replace(script, c.old, c.new, 1)
	}
	if shell == "bash" {
		script = bashAlone + script
	}
	return script, nil
}

// bashAlone is what cobra's script needs of the package bash-completion, for where that
// is not. Words with = or : in them are not put together again.
const bashAlone = `# Without the package bash-completion: as much of it as is needed here.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
	_get_comp_words_by_ref() {
		words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
		cur=${words[cword]} prev=${words[cword - 1]}
	}
fi
`
