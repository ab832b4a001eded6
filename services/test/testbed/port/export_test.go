package port

// ReserveFrom is Reserve, of some of these ports.
func ReserveFrom(ports []int, n int) (*Reservation, error) { return reserve(ports, n) }
