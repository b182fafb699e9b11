package server

import (
	"os/exec"
	"syscall"
)

// StartGuarded starts a command that ends with this process, even if this process is killed. The kernel ends the command when
// the thread that started it ends. Go's threads stay, but for that of a goroutine that ends while it is locked to the thread
// (golang/go#27505).
func StartGuarded(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Start()
}
