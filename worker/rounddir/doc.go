// Package rounddir is the directory through which a program and its worker talk about one round:
// a small protocol of files (docs/programs.md, "The round's directory").
//
// All that is in it is the program's doing, and the program may run as another user than the
// worker, who may be root. So nothing in it is trusted: files are opened below the directory's own
// descriptor, no link is followed, nothing but regular files of the program's user is read, and no
// more of them than the limits say.
//
// News is a pure view of what the files say beyond what was accepted. A report that got lost
// on its way is simply asked for again, and then has what came meanwhile, too.
package rounddir
