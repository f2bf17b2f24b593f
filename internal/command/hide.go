package command

import "github.com/tdf-framework/tdf/internal/hidden"

// Hide keeps the environment and the memory of this process from other processes of its user, programs of a worker
// for example. Best effort: without it, the process does the same work. Call it first in main.
func Hide() { _ = hidden.Process() }
