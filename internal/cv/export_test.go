package cv

// What tests of this package see.
var (
	Classify    = classify
	CountFrames = countFrames
)
