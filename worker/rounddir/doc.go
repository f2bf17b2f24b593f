// Package rounddir is the directory of a round: a protocol of files between a program and its worker
// (docs/programs.md, "The round's directory").
//
// A program writes everything in it, perhaps as another user than the worker, who may be root. So the worker trusts
// nothing in it. It opens files below the directory's own descriptor, follows no link, and reads only regular files
// of the program's user, up to the limits.
//
// News returns what is new since the last accepted report, and changes nothing. If a report is lost, the next News
// has its content again.
package rounddir
