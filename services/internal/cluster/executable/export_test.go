package executable

// KillCopy kills the copy of the program that runs, as the machine may do at any time.
func (c *Cluster) KillCopy() {
	<-c.program.turn
	defer func() { c.program.turn <- struct{}{} }()
	c.program.kill()
}
