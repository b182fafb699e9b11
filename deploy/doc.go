// Package deploy holds the files that ship beside the module, and the tests that run them: packages, container and
// Kubernetes files, and what a monitoring system loads.
package deploy
