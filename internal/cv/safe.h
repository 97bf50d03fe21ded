// SPDX-License-Identifier: Apache-2.0

#ifndef FACEAUTH_SAFE_H
#define FACEAUTH_SAFE_H

#include <stddef.h>

// Calls into OpenCV whose success no check beforehand can assure, because a file decides it. A C++
// exception that crosses into Go aborts the process, so every function here catches all of them and
// returns the text in *err, which the caller frees; on success *err stays NULL.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	int dims;
	int shape[8];
	float *data; // freed by the caller
} fa_tensor;

typedef struct {
	int width, height;
	double scale;
	double mean[3];
	int rgb, gray;
} fa_blob;

void fa_quiet(void);
void fa_one_thread(void);
void fa_trim(void);

void fa_decode(const void *data, int length, int how, void *mat, char **err);

void fa_processor(char *name, size_t size);
void *fa_net_open(const char *path, char **err);
const char *fa_ort_load(const char *library, char **err); // the version of ONNX Runtime; not for two threads at once
void *fa_ort_open(const void *model, size_t length, char **err);
void fa_net_forward(void *net, void *mat, const fa_blob *in, const char **outputs, int n, fa_tensor *out,
	long long *ns, char **err);
void fa_net_close(void *net);

int fa_turns_back(void); // OpenCV turns pictures the wrong way by the container
void *fa_capture_file(const char *url, int timeout_ms, char **err);
void *fa_capture_device(int index, char **err);
int fa_capture_grab(void *capture, char **err);
void fa_capture_retrieve(void *capture, void *mat, char **err);
double fa_capture_get(void *capture, int property, char **err);
int fa_capture_set(void *capture, int property, double value, char **err);
void fa_capture_close(void *capture);

void *fa_cascade_open(const char *path, char **err);
int fa_cascade_detect(void *cascade, void *gray, int smallest, int *boxes, int most, char **err);
void fa_cascade_close(void *cascade);

#ifdef __cplusplus
}
#endif
#endif
