package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Generate a shell completion script",
		Long: "Generates a completion script for bash, zsh, fish or powershell. To load it into the current bash: " +
			"source <(tdf completion bash).\n" +
			"To load it into every new shell, write it to this file:\n" +
			"  bash        /etc/bash_completion.d/tdf (needs the package bash-completion)\n" +
			"  zsh         _tdf in a directory of $fpath\n" +
			"  fish        ~/.config/fish/completions/tdf.fish\n" +
			"  powershell  your profile",
		Example:   "  tdf completion bash > /etc/bash_completion.d/tdf\n  tdf completion zsh > ~/.zfunc/_tdf",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return cli.Usagef("missing or invalid shell: want %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.Stdout)
			}
		},
	}
}
