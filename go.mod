module github.com/faceauth/faceauth

go 1.26

require (
	gocv.io/x/gocv v0.31.0
	gonum.org/v1/gonum v0.17.0
)
