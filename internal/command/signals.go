package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns two contexts. The first SIGTERM or SIGINT ends the first context, and the second signal ends the
// second context. A third signal kills the process.
func Signals() (first, second context.Context) {
	first, endFirst := context.WithCancel(context.Background())
	second, endSecond := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		endFirst()
		<-signals
		signal.Stop(signals)
		endSecond()
	}()
	return first, second
}
