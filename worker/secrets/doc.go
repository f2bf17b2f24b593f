// Package secrets has values that a program gets, and that reports must not show (docs/programs.md, "Secrets").
package secrets
