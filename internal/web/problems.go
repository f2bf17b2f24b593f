package web

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
)

// A kind is a kind of problem. The page /errors and docs/http.md list the kinds.
type kind struct {
	Code   string
	Status int
	Title  string
	Text   string
	hidden bool // the answer does not contain the error, because it may name parts of the installation; the log has it
}

// Kinds that no code of package tdf stands for.
const (
	unauthorized = "unauthorized"
	misdirected  = "misdirected"
	otherOrigin  = "other_origin"
	malformed    = "malformed"
	noMethod     = "no_method"
	notRead      = "unsupported_type"
	tooLarge     = "too_large"
	tooSlow      = "too_slow"
	tooMany      = "too_many_calls"
	precondition = "precondition_failed"
)

var kinds = []kind{
	{
		Code: malformed, Status: 400, Title: "Malformed call",
		Text: "The call is no valid HTTP, or its body ends too early.",
	},
	{Code: unauthorized, Status: 401, Title: "No valid token", Text: "The call has no token, or its token is " +
		"unknown, revoked or expired. Send the header Authorization: Bearer TOKEN."},
	{
		Code: string(task.CodeForbidden), Status: 403, Title: "Not allowed",
		Text: "The role of the token does not allow this.",
	},
	{Code: otherOrigin, Status: 403, Title: "Another origin", Text: "A web page of another origin has made the call."},
	{
		Code: string(task.CodeNotFound), Status: 404, Title: "Not found",
		Text: "The object or the path does not exist, or the token may not see it.",
	},
	{
		Code: noMethod, Status: 405, Title: "Method not allowed",
		Text: "The path exists, but not with this method. The header Allow lists the methods.",
	},
	{Code: tooSlow, Status: 408, Title: "Too slow", Text: "The body of the call took too long."},
	{
		Code: string(task.CodeConflict), Status: 409, Title: "Conflict",
		Text: "The present state of the object forbids the action.",
	},
	{Code: string(task.CodeTaken), Status: 409, Title: "Taken", Text: "Another object has the name, the id or the key."},
	{
		Code: string(task.CodeExpired), Status: 410, Title: "Gone",
		Text: "The object existed, and was removed because it was old.",
	},
	{
		Code: precondition, Status: 412, Title: "The task has changed",
		Text: "A task has not the version that the call names, in If-Match or in its body. Read it again.",
	},
	{Code: tooLarge, Status: 413, Title: "Too large", Text: "The body is too large, has too many " +
		"elements, or the call needs more memory than one client may have."},
	{Code: notRead, Status: 415, Title: "Unsupported type", Text: "The route reads no body of this Content-Type."},
	{
		Code: misdirected, Status: 421, Title: "Another host",
		Text: "The header Host names a host that this server does not have. The configuration lists its names.",
	},
	{
		Code: string(task.CodeInvalid), Status: 422, Title: "Invalid",
		Text: "The call is wrong, whatever the namespace contains. Nothing was done.",
	},
	{
		Code: tooMany, Status: 429, Title: "Too many calls",
		Text: "The token or the address has too many calls at once, or they hold all memory that it may have. The " +
			"header Retry-After says how long to wait.",
	},
	{
		Code: string(task.CodeFailed), Status: 500, Title: "Internal error",
		Text: "The log of the server has the error, with the correlation id of the call.", hidden: true,
	},
	{
		Code: string(task.CodeDamaged), Status: 500, Title: "Damaged data",
		Text: "Data in Redis are not as TDF writes them. The log of the server says more.", hidden: true,
	},
	{
		Code: string(task.CodeRefused), Status: 503, Title: "Redis refuses",
		Text:   "Redis refuses the server, for example because its password is wrong. The log of the server says more.",
		hidden: true,
	},
	{
		Code: string(task.CodeUnavailable), Status: 503, Title: "Unavailable",
		Text: "Redis does not answer, or the server is busy. The same call may succeed later.", hidden: true,
	},
	{
		Code: string(task.CodeCancelled), Status: 503, Title: "Cancelled",
		Text: "The client has gone, or the server stops.", hidden: true,
	},
	{
		Code: string(task.CodeUnknown), Status: 504, Title: "Unknown outcome",
		Text: "The change was made, but too few replicas of Redis have confirmed it in time, so a failure of the primary " +
			"may undo it. The same call with the same Idempotency-Key tells whether they have confirmed it since.",
	},
	{
		Code: string(task.CodeTooManyRequirements), Status: 507, Title: "Too many requirements",
		Text: "The tasks would have too many different requirements. Make the properties coarser that the detail names.",
	},
	{
		Code: string(task.CodeFull), Status: 507, Title: "Full",
		Text: "There is no space for more. Remove something, or raise the limit.",
	},
}

func kindOf(code string) kind {
	for _, k := range kinds {
		if k.Code == code {
			return k
		}
	}
	return kindOf(string(task.CodeFailed))
}

// A problem is the answer to a call that failed (RFC 9457).
type problem struct {
	Type          string `json:"type" doc:"where the kind of the problem is described"`
	Code          string `json:"code" doc:"the kind of the problem"`
	Title         string `json:"title"`
	Status        int    `json:"status"`
	Detail        string `json:"detail"`
	CorrelationID string `json:"correlation_id"`

	retry int // seconds for the header Retry-After; 0 for none
}

func (p *problem) Error() string           { return p.Detail }
func (p *problem) GetStatus() int          { return p.Status }
func (*problem) ContentType(string) string { return "application/problem+json" }
func (k kind) problem(detail string) *problem {
	return &problem{Type: "/errors#" + k.Code, Code: k.Code, Title: k.Title, Status: k.Status, Detail: detail}
}

// refuse returns the problem with this code.
func refuse(code, detail string) *problem { return kindOf(code).problem(detail) }

// problemOf returns the problem for an error of manager or admin. It logs an error that the client must not see.
func (a *api) problemOf(ctx context.Context, err error) *problem {
	if p, ok := err.(*problem); ok {
		p.CorrelationID = callOf(ctx).id
		return p
	}
	k := kindOf(string(task.CodeOf(err)))
	switch {
	case errors.Is(err, pool.ErrLarge):
		k = kindOf(tooLarge)
	case errors.Is(err, pool.ErrShare):
		k = kindOf(tooMany)
	}
	p := k.problem(err.Error())
	p.CorrelationID = callOf(ctx).id
	if k.hidden {
		a.Log.Warn("a call failed", "correlation_id", p.CorrelationID, "error", err)
		p.Detail = k.Text
	}
	if k.Status == http.StatusServiceUnavailable || k.Code == tooMany {
		p.retry = 1
	}
	return p
}

// GetHeaders returns the headers of the answer.
func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retry))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="tdf"`)
	}
	return h
}

// write writes the problem as the answer of a call.
func (p *problem) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has gone
}

// ofHuma replaces the errors that huma makes, because they repeat the values of the call.
func ofHuma(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := refuse(string(task.CodeInvalid), e.Detail)
	for i, d := range e.Errors {
		if i < 10 {
			p.Detail += "; " + d.Location + ": " + d.Message
		}
	}
	p.Status, p.CorrelationID = e.Status, callOf(ctx.Context()).id
	return p, nil
}
