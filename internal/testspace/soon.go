package testspace

import "time"

// Soon is a deadline that a test waits for, or the length of a pause. Use it only where no test fails if everything
// else takes longer.
const Soon = 20 * time.Millisecond
