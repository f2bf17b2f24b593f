// Package open has the commands of tdf that open tasks and push programs.
package open
