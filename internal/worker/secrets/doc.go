// Package secrets reads the secret values that a program gets, and hides them in reports (docs/programs.md,
// "Secrets").
package secrets
