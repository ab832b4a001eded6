//go:build !linux

package artifacts

// addSystem adds nothing: pods run on Linux only.
func (s *FileState) addSystem(any) {}
