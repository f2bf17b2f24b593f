package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Write what has a shell complete commands and flags",
		Long: "Writes a script for bash, zsh, fish or powershell. For this session: source <(tdf completion bash). For all to come:\n" +
			"bash: into /etc/bash_completion.d/tdf (the package bash-completion is needed); zsh: into _tdf in a directory of $fpath;\n" +
			"fish: into ~/.config/fish/completions/tdf.fish; powershell: into the profile.",
		Example:   "  tdf completion bash > /etc/bash_completion.d/tdf",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usage("for which shell? One of %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
		},
	}
}
