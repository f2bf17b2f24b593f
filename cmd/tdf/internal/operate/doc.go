// Package operate has the commands of tdf for operators: a local namespace, statistics, settings and checks.
package operate
