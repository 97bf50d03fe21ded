// SPDX-License-Identifier: Apache-2.0

#ifndef FACEAUTH_NET_H
#define FACEAUTH_NET_H

#include "safe.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include <opencv2/core.hpp>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

// While one exists, this thread computes with zeros in place of denormal numbers, which cost some processors a hundred
// times an addition. The mode belongs to the thread, and goroutines move between threads: it ends with the call.
class Flush {
#if defined(__x86_64__) || defined(__i386__)
	enum : unsigned { FTZ = 0x8000, DAZ = 0x40 };
	unsigned before = _mm_getcsr();

public:
	Flush() { _mm_setcsr(before | FTZ | DAZ); }
	~Flush() { _mm_setcsr(before); }
#elif defined(__aarch64__)
	uint64_t before;

public:
	Flush() {
		asm volatile("mrs %0, fpcr" : "=r"(before));
		asm volatile("msr fpcr, %0" : : "r"(before | 1 << 24)); // FZ
	}
	~Flush() { asm volatile("msr fpcr, %0" : : "r"(before)); }
#else
public:
	Flush() {}
	~Flush() {}
#endif
	Flush(const Flush &) = delete;
};

template <typename F> void guard(char **err, F f) {
	try {
		f();
	} catch (const cv::Exception &e) {
		*err = strdup(e.err.empty() ? "OpenCV error" : e.err.c_str());
	} catch (const std::exception &e) {
		*err = strdup(e.what());
	} catch (...) {
		*err = strdup("unknown C++ exception");
	}
}

// A network in OpenCV or in ONNX Runtime. run stores the n named outputs; an empty name is the last output.
struct Net {
	cv::Mat blob; // the input, kept from run to run: its pages need not be mapped again
	virtual ~Net() {}
	virtual void run(const char **names, int n, fa_tensor *out) = 0;
};

inline void store(fa_tensor *out, const float *data, int dims, const int *shape) {
	size_t total = 1;
	for (int d = 0; d < dims; d++)
		total *= shape[d];
	out->data = static_cast<float *>(malloc(total * sizeof(float) + 1));
	if (!out->data)
		throw std::bad_alloc();
	memcpy(out->data, data, total * sizeof(float));
	out->dims = dims;
	for (int d = 0; d < dims; d++)
		out->shape[d] = shape[d];
}

#endif
