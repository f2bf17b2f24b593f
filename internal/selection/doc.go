// Package selection reads the texts with which users select tasks: ids, states, times and spans. It needs no terminal and no
// flags, so that each front end of TDF understands the same texts.
package selection
