package tests

import "syscall"

// guardProcess makes the kernel kill a server when this process ends, even if it is killed.
func guardProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// ownGroup puts a helper process into its own process group, so that ^C does not end it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
