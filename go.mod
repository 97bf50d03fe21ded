module github.com/faceauth/faceauth

go 1.26

require (
	gocv.io/x/gocv v0.31.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/maruel/natural v1.3.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)
