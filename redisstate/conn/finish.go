package conn

import (
	"context"
	"time"
)

// finishTime is how long a call goes on after its client has gone, or its time is over.
const finishTime = time.Second

// Finish returns a context for a call whose effect would be lost with its answer, such as a claim. It ends a second
// after ctx, so that a call under way gets its answer, but no call waits for a Redis that is away. The caller must call
// the returned function.
func Finish(ctx context.Context) (context.Context, context.CancelFunc) {
	finishing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		Sleep(finishing, finishTime)
		cancel()
	})
	return finishing, func() { stop(); cancel() }
}
