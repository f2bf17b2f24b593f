// Package record makes and reads the two output files of a round (docs/programs.md, "The output files"). The program
// writes to the files directly. So it can continue to write after the worker has ended. The files are in a directory of
// the worker, under names that say whose output they contain, until the worker keeps or removes them.
//
// Reading takes a bounded amount of memory, and masks secrets.
package record
