// Package secrets holds values that a program gets and nobody may read in what is reported
// (docs/programs.md, "Secrets").
package secrets
