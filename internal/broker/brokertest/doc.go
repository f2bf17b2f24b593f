// Package brokertest checks what TDF promises to workers, for every kind of worker: those that run handlers or
// programs, those over HTTP, and those of Taskmaster and Skuld. Its tests are a table, rows × kinds. A row is a story
// about a task and its workers; it checks what Redis has at the end, and the answers to the workers. docs/guarantees.md
// names the rows behind its sentences.
package brokertest
