// Package rounddir makes and reads the directory of a round. Through the files in it, a program and its worker exchange
// data (docs/programs.md, "The round's directory").
//
// A program can write everything in the directory. The worker may be root, while the program runs as another user. So
// the worker trusts nothing in the directory. It opens files relative to the directory's descriptor, follows no link,
// and reads only regular files of the program's user, up to the limits.
//
// News returns the data that is new since the last accepted report. It does not mark the data as reported. So if a
// report is lost, the next call of News returns the same data again.
package rounddir
