package artifacts

import "syscall"

// addSystem adds the members that only the system knows.
func (s *FileState) addSystem(sys any) {
	if st, ok := sys.(*syscall.Stat_t); ok {
		s.device, s.inode, s.changed = st.Dev, st.Ino, st.Ctim.Nano()
	}
}
