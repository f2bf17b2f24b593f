// Package admin observes and repairs a namespace. It explains tasks, diagnoses problems, groups failures, and estimates
// the remaining time. It lists workers, and checks and repairs tasks. Use this package for dashboards and
// HTTP APIs. The command tdf uses it, too.
package admin
