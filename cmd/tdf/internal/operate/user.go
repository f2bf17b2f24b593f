package operate

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/userfile"
)

func User(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "user", Short: "Add, list or remove users of the dashboard",
		Long: "A user logs in to the dashboard (docs/dashboard.md) with a name and a password, and may do what the " +
			"role says:\n" + rolesText() + "\n\n" +
			"The users are in the file of [http] users, or in that of --file. Servers notice changes at once.",
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return cli.Usagef("want tdf user add, ls or rm") },
	}
	for _, sub := range []*cobra.Command{userAdd(a), userList(a), userRemove(a)} {
		cli.CompleteValues(sub)
		c.AddCommand(sub)
	}
	return c
}

// userFile returns the path of the user file.
func userFile(a *cli.App, flag string) (string, error) {
	tool, err := a.Tool()
	if err != nil {
		return "", err
	}
	path := cmp.Or(a.Path(flag), tool.HTTP.Users)
	if path == "" {
		return "", cli.Usagef("no user file: want --file FILE, or [http] users in the configuration")
	}
	return path, nil
}

func fileFlag(c *cobra.Command) *string {
	return c.Flags().String("file", "", "`FILE` of the users (default: [http] users)")
}

func userAdd(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "add NAME --role ROLE", Short: "Add a user",
		Long: "Asks for the password twice. If stdin is not a terminal, its first line is the password.",
		Example: "  tdf user add ada --role operator --file /etc/tdf/users\n" +
			"  tdf user add bob --role viewer --file users < password.txt",
		Args: cobra.ExactArgs(1),
	}
	role, file := c.Flags().String("role", "", "`ROLE` of the user: viewer, submitter or operator"), fileFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		path, err := userFile(a, *file)
		if err != nil {
			return err
		}
		password, err := askPassword(c.Context(), a)
		if err != nil {
			return err
		}
		if err := userfile.Add(path, args[0], access.Role(*role), password); err != nil {
			return err
		}
		a.Say("%s: %s, in %s", args[0], *role, path)
		return nil
	}
	return c
}

// askPassword reads a new password.
func askPassword(ctx context.Context, a *cli.App) (string, error) {
	terminal, ok := a.Stdin.(*os.File)
	if !ok || !cli.IsTerminal(terminal) {
		line, err := bufio.NewReader(cli.Interruptible(ctx, a.Stdin)).ReadString('\n')
		if line == "" && err != nil {
			return "", cli.Usagef("no password on stdin")
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	var typed [2][]byte
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(a.Stderr, prompt)
		var err error
		if typed[i], err = term.ReadPassword(int(terminal.Fd())); err != nil {
			return "", err
		}
		fmt.Fprintln(a.Stderr)
	}
	if string(typed[0]) != string(typed[1]) {
		return "", cli.Usagef("the passwords differ")
	}
	return string(typed[0]), nil
}

func userList(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List the users, but not the hashes of their passwords",
		Example: "  tdf user ls\n  tdf user ls --file /etc/tdf/users",
		Args:    cli.NoArguments,
	}
	file := fileFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		path, err := userFile(a, *file)
		if err != nil {
			return err
		}
		all, err := userfile.Read(path)
		if err != nil {
			return err
		}
		t := a.Table("name", "role")
		for _, u := range all {
			t.Row(u.Name, string(u.Role))
		}
		return t.Write()
	}
	return c
}

func userRemove(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "rm NAME…", Short: "Remove users, and end their sessions",
		Example: "  tdf user rm ada\n  tdf user rm ada bob --file /etc/tdf/users",
		Args:    cobra.MinimumNArgs(1),
	}
	file := fileFlag(c)
	c.RunE = func(_ *cobra.Command, names []string) error {
		path, err := userFile(a, *file)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := userfile.Remove(path, name); err != nil {
				return fmt.Errorf("remove user %s: %w", name, err)
			}
			a.Say("removed user %s", name)
		}
		return nil
	}
	return c
}
