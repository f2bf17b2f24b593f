// Package listing finds tasks by a query, page by page. Packages manager and admin share it.
//
// The lists in Redis contain the state, the group and the time of each task. To check any other condition, a [Walk]
// reads the tasks one by one, within [Bounds].
package listing
