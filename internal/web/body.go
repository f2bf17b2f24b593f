package web

import (
	"io"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/web/wire"
)

// A bodyOf says which bodies a route reads.
type bodyOf struct {
	limit   int64
	longest time.Duration // half of the time that the client has to send it
	kinds   []string
	into    reflect.Type // of the value; nil if the route reads the JSON itself
}

// read reads the body of a call. The error is a problem, and the connection then ends, because the rest of the body is
// not worth reading.
func (b *bodyOf) read(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	callOf(r.Context()).body.mustEndIn(2 * b.longest)
	if err = checkType(r, b.kinds); err == nil {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, b.limit))
	}
	if err == nil && b.into != nil && slices.Contains(b.kinds, jsonKinds[0]) {
		err = wire.CheckJSON(r.Context(), body, b.into)
	}
	if err != nil {
		w.Header().Set("Connection", "close")
		return nil, bodyProblem(err)
	}
	return body, nil
}
