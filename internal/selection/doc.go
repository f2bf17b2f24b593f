// Package selection reads the texts with which users select tasks: ids, states, times, spans and flags. It needs no
// terminal, so that each front end of TDF understands the same texts.
package selection
