// Package retention removes old output files and unused programs from a worker's disk. If all files and programs
// together take too much room, it removes the oldest ones (docs/configuration.md, "[worker]": keep_files and
// max_files_bytes).
//
// It must not remove other files, since users have files of their own in these directories, whose names may look like
// those of output files. So each worker writes a journal of the files that it makes (journal.go). A file belongs to a
// round only if a journal names it, and if it is still the same file. Below the working directory, retention follows no
// link (find.go, remove.go). Without its journal, a file stays.
//
// It reads the journals of all workers, even of workers with other names. If it removed only its own files, the files
// of a worker that never comes back could fill the disk. It reads no journal that another user may have written. The
// age of a file counts from its last write.
//
// A file with a time in the future counts as new, since the clock was probably set back. If the clock was set ahead,
// for example by a year, all files that are not in use count as old.
package retention
