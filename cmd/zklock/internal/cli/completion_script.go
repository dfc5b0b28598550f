package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// completionHelp is the long help of zklock completion.
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

// addCompletion adds the command that prints the scripts. They are cobra's scripts, patched
// so that they evaluate no text that could run a command.
func (a *App) addCompletion(root *cobra.Command) {
	var script bytes.Buffer // the output of cobra's commands
	root.SetOut(&script)
	root.InitDefaultCompletionCmd()
	root.SetOut(os.Stdout)
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	c.Short, c.Long, c.Example = "Generate a shell completion script", completionHelp, completionExample
	c.Args, c.RunE = Subcommand("a shell", "zklock completion bash, zsh, fish, or powershell")
	for _, sub := range c.Commands() {
		sub.Short = "Generate the completion script for " + sub.Name()
		sub.Long = "Prints the completion script for " + sub.Name() + ".\nThe help of zklock completion shows how to load it."
		sub.Example = "  zklock completion " + sub.Name()
		generate := sub.RunE
		sub.RunE = func(c *cobra.Command, args []string) error {
			if err := generate(c, args); err != nil {
				return err
			}
			text, err := safeScript(sub.Name(), script.String())
			if err != nil {
				return err
			}
			_, err = os.Stdout.WriteString(text)
			return err
		}
	}
}

// A scriptPatch replaces a text that occurs exactly once in a script.
type scriptPatch struct{ old, new string }

// scriptPatches are the patches for each shell. Each of cobra's scripts evaluates the typed
// line at every completion, and the one for fish does so without the quotes. With the
// patches, a line with characters that can run a command or open a file is not evaluated,
// and fish evaluates nothing. bash and zsh evaluate the values of variables in forms such as
// ${name@P}, $[name], and $name[index]. The line can set them, also with octal numbers for
// characters, and the script's own variables contain the line. Of such forms, the scripts
// evaluate only $NAME and ${NAME}.
var scriptPatches = map[string][]scriptPatch{
	"bash": {{
		`    out=$(eval "${requestComp}" 2>/dev/null)`,
		`    # Unless it could run something else.
    local unsafe='\$(\[|\{[A-Za-z0-9_]*[^A-Za-z0-9_}])'
    [[ ${requestComp} == *[` + "\\`" + `\;\|\&\<\>\(\)$'\n']* || ${requestComp} =~ ${unsafe} ]] || out=$(eval "${requestComp}" 2>/dev/null)`,
	}},
	"zsh": {{
		`    out=$(eval ${requestComp} 2>/dev/null)`,
		`    # Unless it could run something else.
    local unsafe='\$(.*\[|\{[A-Za-z0-9_]*[^A-Za-z0-9_}])'
    if [[ ${requestComp} == *[` + "\\`" + `\;\|\&\<\>\(\)]* || ${requestComp} =~ ${unsafe} ]]; then
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

// safeScript returns the script for a shell with its patches.
func safeScript(shell, script string) (string, error) {
	for _, c := range scriptPatches[shell] {
		if strings.Count(script, c.old) != 1 {
			return "", fmt.Errorf("patch the completion script for %s: the line %q does not occur exactly once", shell, strings.TrimSpace(c.old))
		}
		script = strings.Replace(script, c.old, c.new, 1)
	}
	if shell == "bash" {
		script = bashFallback + script
	}
	return script, nil
}

// bashFallback defines the function that cobra's script needs from the package
// bash-completion, if that package is not installed. It does not rejoin words with = or :.
const bashFallback = `# A substitute for the package bash-completion, if it is not installed.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
	_get_comp_words_by_ref() {
		words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
		cur=${words[cword]} prev=${words[cword - 1]}
	}
fi
`
