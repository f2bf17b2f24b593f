// Package record is the worker's own record of a round: the two files that a program writes to
// directly (docs/programs.md, "How a program is run"). Nothing of the worker stands between,
// whatever is printed and whoever goes on writing; the files stay when the round is over.
//
// What is read of them takes no more memory than was asked for, and shows no secret, not even
// the part of one at a cut.
package record
