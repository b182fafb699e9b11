package server

import (
	"os/exec"
	"syscall"
)

// guard makes the kernel kill a command when this process ends, even if this process is killed.
func guard(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
