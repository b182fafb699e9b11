package tests

import "syscall"

// guardProcess makes the kernel end a server when this process ends, however it does.
func guardProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// ownGroup keeps a helper out of the reach of a ^C that is meant for this process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
