package command

import "github.com/tdf-framework/tdf/internal/hidden"

// Hide hides the environment and the memory of this process from other processes of its user, such as a worker's
// programs. It ignores errors. Call it first in main.
func Hide() { _ = hidden.Process() }
