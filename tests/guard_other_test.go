//go:build !linux

package tests

import "syscall"

// guardProcess can promise nothing here: servers end with their tests, but would
// outlive a run that is killed.
func guardProcess() *syscall.SysProcAttr { return nil }

// ownGroup keeps a helper out of the reach of a ^C that is meant for this process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
