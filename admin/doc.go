// Package admin looks after a namespace: it explains tasks, diagnoses problems, groups failures, counts and estimates, lists
// workers, checks and repairs tasks, and dumps and loads them. Use it for dashboards and HTTP APIs; the command tdf uses
// it too.
package admin
