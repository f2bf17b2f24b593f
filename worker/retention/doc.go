// Package retention keeps a worker's disk in order: it removes the files that rounds left and the
// programs that nobody uses, when they are old, and the oldest when all of them take too much
// (docs/configuration.md, "[worker]": keep_files and max_files_bytes).
//
// The directories are users', so what it may remove is narrow. The two configured file names are
// turned into what they match ("pattern.go"): a regular file of such a name is an output file, a
// directory of the output file's name with .files or .scratch for its extension lies beside it.
// Nothing else is removed, and no link is followed below the working directory ("find.go",
// "remove.go"). Files that came with a program are its own, whatever their names.
//
// Output files of any worker's name match: that of a worker that never comes back must not fill
// the disk. Age decides, by the time that a file was last written to.
//
// What lies in the future is young, never old: a clock was set back, and until it is there again
// such files stay. A clock that is set ahead, by a year say, makes all but what is in use old.
package retention
