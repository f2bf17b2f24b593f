// Package broker is the side of a worker that faces Redis, in one place for all workers: those that run here, those
// over HTTP, and those of other systems' interfaces. It says what the end of a round means for its task.
package broker
