// SPDX-License-Identifier: Apache-2.0

// Package faceauth is the root of a library and a program that recognise people by their faces, on
// the device that has the camera. A user labels a few faces of each person. From then on the device
// recognises these people in each frame, learns from unlabelled faces, and refuses strangers. One
// number bounds its memory and the time for a face. The methods come from M. Valko, Adaptive
// Graph-Based Algorithms for Conditional Anomaly Detection and Semi-Supervised Learning, 2011.
//
// A [Recogniser] does the whole of it in a few lines: [New] makes one, [Recogniser.Enroll] shows it
// a person, [Recogniser.Who] asks who is in a photograph, and [Recogniser.Watch] follows a camera.
// It decodes pictures with OpenCV and needs cgo; the packages below need less, and do more.
// ARCHITECTURE.md beside this file has a drawing of them.
//
// # From a camera to a name
//
// Package facedet opens a source of frames with [facedet.Open] and finds faces in a
// [facedet.Picture] with a [facedet.Detector]. A [preprocess.Extractor] turns a face into a vector.
// [pipeline.New] ties the three together into a stream of [face.Frame] values, which are plain Go
// values: a program that only judges them needs no OpenCV.
//
// An [online.Learner] gets labelled faces, and judges and learns the others. A [sighting.Watcher]
// gives it the faces of each frame, and collects its verdicts while a person stays in view.
// [gallery.Gallery] keeps people and their learned faces in a file.
//
// Source, detector and extractor are interfaces of few methods. Bring your own: see the example of
// package pipeline for a detector, and examples/network for a neural network that is described in
// JSON.
//
// # Products
//
// Package tablet lets people log in, and eye decodes pictures in a process of its own. The program
// in cmd/faceauth offers that and everything else at a command line: who comes and goes,
// recordings, photographs. What measures these packages on labelled recordings is in lab, a module
// and a program of its own.
//
// # Mathematics
//
// Package quantized keeps a similarity graph at a fixed size over an endless stream, and computes
// harmonic functions on it. Package online is the learner on top.
//
// # Caveats
//
// Vectors and pictures of faces are biometric data. No package puts them into a log line or an
// error; the files that hold them are readable by their owner alone. What a recogniser is not safe
// against is in README.md and SECURITY.md.
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

import "github.com/faceauth/faceauth/internal/version"

// Version is the version of the library and the programs, by semver.org.
const Version = version.Version
