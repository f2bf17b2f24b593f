// Package clienttest tests the HTTP API from outside: it validates the OpenAPI document, and runs the life of a task
// with a client that a tool generates from the document. It is a module of its own, so that other programs do not
// depend on the tools.
package clienttest
