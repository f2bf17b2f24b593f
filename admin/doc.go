// Package admin looks after a namespace: it explains tasks, diagnoses problems, groups failures, counts and estimates, lists
// workers, checks and repairs tasks, and dumps and loads them. The command tdf, dashboards and HTTP APIs are made with it.
package admin
