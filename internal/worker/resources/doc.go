// Package resources knows what a worker can give to the rounds that it runs: cores, memory, GPUs, and resources that
// the user has named. Detect finds what the machine has, New makes a Pool of what the worker offers,
// and the Pool gives out shares and takes them back.
package resources
