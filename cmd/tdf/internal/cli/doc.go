// Package cli has what the commands of tdf share: the connection, the flags, tables and JSON, questions and exit
// statuses.
package cli
