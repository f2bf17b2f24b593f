// Package hidden keeps this process from other processes of its user: programs run as the user of their worker,
// unless [worker] user says otherwise, and must not read its password (docs/programs.md, "Secrets").
package hidden
