package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that the first SIGTERM or SIGINT ends, and one that the second
// ends. The third kills the process.
func Signals() (told, toldAgain context.Context) {
	told, tell := context.WithCancel(context.Background())
	toldAgain, tellAgain := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		tell()
		<-signals
		signal.Stop(signals)
		tellAgain()
	}()
	return told, toldAgain
}
