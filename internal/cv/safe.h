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
void fa_reuse(void);
void fa_trim(void);

void fa_decode(const void *data, int length, int how, void *mat, char **err);

// The tiles of a HEIF picture, or JPEG XL. open returns NULL if there is no such decoder, or it
// refuses the configuration; most is the greatest number of pixels. Negative numbers of H.273 stand
// for what the coded picture says. An empty mat becomes the picture.
typedef enum { FA_HEVC, FA_AV1, FA_JPEGXL } fa_coding;
void *fa_tiles_open(fa_coding coding, const void *config, int length, long long most, char **err);
int fa_tiles_decode(void *tiles, const void *data, int length, int matrix, int full, int transfer,
	void *mat, int x, int y, int *width, int *height, char **err); // 0 if it cannot be decoded
void fa_tiles_close(void *tiles);

void fa_processor(char *name, size_t size);
void *fa_net_open(const char *path, char **err);
const char *fa_ort_load(const char *library, char **err); // the version of ONNX Runtime; not for two threads at once
void *fa_ort_open(const void *model, size_t length, char **err);
void fa_net_forward(void *net, void *mat, const fa_blob *in, const char **outputs, int n, fa_tensor *out,
	long long *ns, char **err);
void fa_net_close(void *net);

void *fa_camera_open(int index, int *packed, char **err); // packed: it gives JPEGs
int fa_camera_read(void *camera, void *mat, char **err);
void fa_camera_close(void *camera);

// A film is what FFmpeg reads: a file or a URL.
typedef struct {
	int frames;         // -1 if they are not counted
	double rate;        // frames a second, or 0
	double length;      // seconds from the begin of the container to the end of the film, or 0
	int others;         // further films in the file
	int ends;           // it has a length
	int jpeg;           // its packets are JPEGs
	int width, height;  // of frames as they are stored
	int turn;           // degrees clockwise by which they are to be turned
	double stretch;     // width of a pixel by its height, or 0
} fa_film_about;

typedef struct {
	void *frame;        // for fa_frame_bgr; freed by the caller. Or
	const void *data;   // a packet, valid until the next call
	int length;
	int width, height;
	int damaged;        // of the data of the frame, a part is missing
	double ms;          // when it is shown
} fa_shot;

enum {
	FA_MOST_PIXELS = 64000000,
	FA_SPOILT = -(1 << 30), // no number of FFmpeg: what comes of a stream has been damaged for a while
};

void *fa_film_open(const char *name, const char *host, const char *served, int timeout_ms, fa_film_about *about,
	int *failed, char **err);
int fa_film_next(void *film, int packets, fa_shot *out, char **err);
int fa_film_decode(void *film, fa_shot *out, char **err);
void fa_film_close(void *film);
void fa_frame_bgr(void *frame, void *mat, char **err);
int fa_frame_grey(void *frame, int width, int height, void *mat, char **err); // 0: it does not store grey values
void fa_frame_free(void *frame);

void *fa_cascade_open(const char *path, char **err);
int fa_cascade_detect(void *cascade, void *gray, int smallest, int *boxes, int most, char **err);
void fa_cascade_close(void *cascade);

#ifdef __cplusplus
}
#endif
#endif
