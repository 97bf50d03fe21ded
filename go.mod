module github.com/faceauth/faceauth

go 1.26.0

require (
	gocv.io/x/gocv v0.31.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/maruel/natural v1.3.0 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/schollz/progressbar/v3 v3.19.1 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
)
