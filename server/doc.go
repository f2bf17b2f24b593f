// Package server decides what becomes of tasks: it looks at those that are due, asks the
// rules of package tdf, and has the store carry out what they say. It keeps nothing that
// matters in memory, so several servers beside each other, or one that is killed, do no harm.
//
// A round does three things: it settles what is due, it notes that the server is alive, and
// it audits a page of what components of the original TDF, or hands, may have left behind.
package server
