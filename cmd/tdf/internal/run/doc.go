// Package run is the command tdf run: it runs a command once for each input, on this machine or on workers.
package run
