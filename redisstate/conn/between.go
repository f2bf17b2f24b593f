package conn

import "context"

type betweenKey struct{}

// Between returns a context. After each call to Redis with this context, a Conn calls the function. So a server can send heartbeats
// while it works through many pages. The function makes its own calls with another context. If it is nil, the Conn calls nothing.
func Between(ctx context.Context, do func()) context.Context {
	return context.WithValue(ctx, betweenKey{}, do)
}

func between(ctx context.Context) {
	if do, _ := ctx.Value(betweenKey{}).(func()); do != nil {
		do()
	}
}
