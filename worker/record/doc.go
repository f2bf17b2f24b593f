// Package record has the two output files of a round, to which a program writes directly (docs/programs.md, "The
// output files"). The program can go on writing when the worker has ended, and the files stay after the round.
//
// Reading takes a bounded amount of memory, and masks secrets, even a part of one at a cut.
package record
