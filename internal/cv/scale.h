// SPDX-License-Identifier: Apache-2.0

#ifndef FACEAUTH_SCALE_H
#define FACEAUTH_SCALE_H

#include <cstring>
#include <stdexcept>

#include <opencv2/core.hpp>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

// fullRange reports whether the luma of a frame goes from 0 to 255, and not from 16 to 235.
inline bool fullRange(const AVFrame *f, const AVPixFmtDescriptor *d) {
	return f->color_range == AVCOL_RANGE_JPEG || !strncmp(d->name, "yuvj", 4) ||
		(d->nb_components == 1 && f->color_range == AVCOL_RANGE_UNSPECIFIED);
}

// Scaler converts decoded frames into BGR.
class Scaler {
	SwsContext *context = nullptr;
	cv::Mat room; // swscale writes in blocks, beyond the ends of lines, and of the last one
	static const int block = 64;

public:
	Scaler() {}
	Scaler(const Scaler &) = delete;
	~Scaler() { sws_freeContext(context); }

	// bgr returns the frame in BGR of 8 or 16 bits, valid until the next call. A negative matrix
	// or range is that of the frame: swscale itself asks the format alone, and would take every
	// yuv420p for BT.601 from 16 to 235.
	cv::Mat bgr(const AVFrame *in, bool deep = false, int matrix = -1, int full = -1) {
		const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(AVPixelFormat(in->format));
		context = sws_getCachedContext(context, in->width, in->height, AVPixelFormat(in->format),
			in->width, in->height, deep ? AV_PIX_FMT_BGR48 : AV_PIX_FMT_BGR24, SWS_BICUBIC, nullptr,
			nullptr, nullptr);
		if (!d || !context)
			throw std::runtime_error("its pixels cannot be converted");
		matrix = matrix >= 0 ? matrix : in->colorspace;
		full = full >= 0 ? full : fullRange(in, d);
		bool wide = matrix == AVCOL_SPC_BT2020_NCL || matrix == AVCOL_SPC_BT2020_CL;
		const int *by = sws_getCoefficients(matrix == AVCOL_SPC_BT709 ? SWS_CS_ITU709
			: wide ? SWS_CS_BT2020 : SWS_CS_ITU601);
		sws_setColorspaceDetails(context, by, full, by, 1, 0, 1 << 16, 1 << 16);
		int type = deep ? CV_16UC3 : CV_8UC3;
		room.create(in->height + 2, in->width % block ? FFALIGN(in->width, block) + block : in->width, type);
		uint8_t *planes[] = {room.data, nullptr, nullptr, nullptr};
		int steps[] = {int(room.step), 0, 0, 0};
		sws_scale(context, in->data, in->linesize, 0, in->height, planes, steps);
		return room(cv::Rect(0, 0, in->width, in->height));
	}

	// take returns the frame in BGR of 8 bits, and keeps nothing of it.
	cv::Mat take(const AVFrame *in) {
		cv::Mat m = bgr(in);
		if (room.cols != in->width)
			m = m.clone();
		else
			m = room, m.resize(in->height); // copies nothing
		room.release();
		return m;
	}
};

#endif
