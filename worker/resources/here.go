package resources

import "os"

// Here returns the machine of this process.
func Here() *Machine { return Detect(os.DirFS("/"), affinity(), os.LookupEnv) }
