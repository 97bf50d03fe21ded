// Package faceauth is the root of a library and a program that recognise people by their faces, on the
// device that has the camera.
//
// The packages in the order in which a face passes through them: facedet takes frames and finds
// faces, preprocess makes vectors of them, pipeline ties both together, online judges and learns,
// quantized keeps its graph small, and graph holds the mathematics. Package gallery keeps the people
// in a file, replay reports on a recording, evaluate measures it all, and calibrate chooses settings by
// that. Below tablet is what a login needs: sealed profiles, and the rules of a session; below office what says who
// comes and goes. Beside the learner, on the same graphs, maxmargin learns classifiers of which distil makes verifiers,
// and anomaly finds labels that do not go with their examples. The program is in cmd/faceauth.
package faceauth
