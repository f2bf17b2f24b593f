// Package config reads the INI files of the three components as typed values. It applies defaults and environment
// variables, and checks the values (docs/configuration.md).
//
// The table keys defines each key: its section, its default, the values that it accepts, and its meaning. The code that
// decodes files, applies environment variables and finds unknown keys uses the table. Tests compare it with the page in
// docs/ and with the files in configs/. A new key needs a row in the table and a field of a struct.
//
// A file may contain the sections of several components, so that one file is enough for a project. Every component
// checks all sections.
//
// gopkg.in/ini.v1 parses the files. Before that, file.go checks each line and quotes its value, because a password may
// contain any character. Without the quotes, ini.v1 would change values with backquotes, with a backslash at the end,
// or with a #. Without the checks, its errors would quote whole lines, which may contain a password.
package config
