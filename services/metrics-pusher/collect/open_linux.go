package collect

import "syscall"

// nonblock opens what is no file without waiting for it.
const nonblock = syscall.O_NONBLOCK
