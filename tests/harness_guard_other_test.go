//go:build !linux

package tests

import "syscall"

// guardProcess does nothing on this system. Servers end with their tests, but they go on
// running if this process is killed.
func guardProcess() *syscall.SysProcAttr { return nil }

// ownGroup puts a helper process into its own process group, so that ^C does not end it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
