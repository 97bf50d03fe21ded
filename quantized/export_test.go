package quantized

// SetMaxEdges bounds the edges of all graphs until the returned function is called.
func SetMaxEdges(n int) (undo func()) {
	old := maxEdges
	maxEdges = n
	return func() { maxEdges = old }
}
