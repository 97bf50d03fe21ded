// SPDX-License-Identifier: Apache-2.0

// Package faceauth is the root of a library, and of a program, that recognise people by their faces on the device
// that has the camera. A few faces of each person are labelled. From then on the device recognises these people frame
// by frame, goes on learning from faces that nobody labels, refuses strangers, and never grows: memory and time for a
// face are bounded by one number. The methods are those of M. Valko, Adaptive Graph-Based Algorithms for Conditional
// Anomaly Detection and Semi-Supervised Learning, 2011.
//
// This package holds the version alone. ARCHITECTURE.md beside it has a drawing of all packages and follows one face
// through them; examples/ has programs to start from.
//
// # From a camera to a name
//
// Package facedet opens a source of frames with [facedet.Open] and finds faces in a [facedet.Picture] with a
// [facedet.Detector]. A [preprocess.Extractor] turns a face into a vector. [pipeline.New] ties the three together
// into a stream of [face.Frame] values, which are plain Go values: a program that only judges them needs no OpenCV.
//
// An [online.Learner] is shown labelled faces, and judges and learns the others. A [sighting.Watcher] gives it the
// faces of each frame, and gathers its verdicts on a person who stays in view. [gallery.Gallery] keeps
// people and their learned faces in a file.
//
// Source, detector and extractor are interfaces of few methods. Bring your own: see examples/detector for a detector,
// and examples/network for a neural network that is described in JSON.
//
// # Products
//
// Package tablet lets people log in, office says who comes and goes, replay reports on a recording, and office/search
// finds people in many of them. Package evaluate measures all this on labelled recordings, evaluate/dataset reads them,
// and calibrate chooses settings by them. The program in cmd/faceauth puts flags before these packages.
//
// # Mathematics
//
// Package graph builds similarity graphs and solves for harmonic functions on them; quantized keeps such a graph at a
// fixed size over an endless stream; online is the learner on top. On the same graphs, maxmargin learns classifiers of
// which distil makes small verifiers, and anomaly finds labels that do not go with their examples.
//
// # Caveats
//
// Vectors and pictures of faces are biometric data. No package puts them into a log line or an error; the files that
// hold them are readable by their owner alone. What a recogniser is not safe against is in README.md and SECURITY.md.
//
// [facedet.Open]: https://pkg.go.dev/github.com/faceauth/faceauth/facedet#Open
// [facedet.Picture]: https://pkg.go.dev/github.com/faceauth/faceauth/facedet#Picture
// [facedet.Detector]: https://pkg.go.dev/github.com/faceauth/faceauth/facedet#Detector
// [preprocess.Extractor]: https://pkg.go.dev/github.com/faceauth/faceauth/preprocess#Extractor
// [pipeline.New]: https://pkg.go.dev/github.com/faceauth/faceauth/pipeline#New
// [face.Frame]: https://pkg.go.dev/github.com/faceauth/faceauth/face#Frame
// [online.Learner]: https://pkg.go.dev/github.com/faceauth/faceauth/online#Learner
// [sighting.Watcher]: https://pkg.go.dev/github.com/faceauth/faceauth/sighting#Watcher
// [gallery.Gallery]: https://pkg.go.dev/github.com/faceauth/faceauth/gallery#Gallery
package faceauth

// Version is the version of the library and the program, by semver.org.
const Version = "0.1.0"
