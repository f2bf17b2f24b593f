// Package linear checks that histories of calls are linearizable: that each call happened at one moment between its
// start and its answer. It has only tests.
//
// A history (history_test.go) is made by clients (client_test.go): managers, workers and servers that make the calls of
// the product on one Redis, while faults (faults_test.go) come. Each call, its answer, and the order of all starts and
// answers are recorded. The models (model_test.go) say what the answers may be, and porcupine looks for an order of the
// calls that explains them. If the outcome of a call is unknown, it may have happened at any time after its start, or
// not at all.
//
// The builds in broken_test.go are broken on purpose. Each must violate a model: this tests the test.
package linear
