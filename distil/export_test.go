package distil

import "github.com/faceauth/faceauth/internal/envelope"

// Seal makes a file of a body.
func Seal(body []byte) []byte { return envelope.Seal(kind, body) }
