// The tiles of HEIF pictures, and JPEG XL, by the decoders of FFmpeg.

#include "net.h"
#include "scale.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <opencv2/imgproc.hpp>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace {

struct Tiles {
	AVCodecContext *codec = nullptr;
	AVFrame *frame = av_frame_alloc();
	AVPacket *packet = av_packet_alloc();
	Scaler scaler;

	Tiles() {
		if (!frame || !packet)
			throw std::bad_alloc();
		av_log_set_level(AV_LOG_QUIET); // what goes wrong is returned
	}
	Tiles(const Tiles &) = delete;
	~Tiles() {
		av_packet_free(&packet);
		av_frame_free(&frame);
		avcodec_free_context(&codec);
	}

	bool open(fa_coding coding, const void *config, int length, int64_t most);
	bool decode(const void *data, int length);
	void convert(cv::Mat to, int matrix, int full, int transfer);
};

// open opens a decoder, which decodes no tile of more pixels than most.
bool Tiles::open(fa_coding coding, const void *config, int length, int64_t most) {
	const AVCodecID ids[] = {AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1, AV_CODEC_ID_JPEGXL};
	const AVCodec *decoder = avcodec_find_decoder(ids[coding]);
	codec = decoder ? avcodec_alloc_context3(decoder) : nullptr;
	if (!codec)
		return false;
	codec->extradata = static_cast<uint8_t *>(av_mallocz(length + AV_INPUT_BUFFER_PADDING_SIZE));
	if (!codec->extradata)
		throw std::bad_alloc();
	if (length > 0)
		memcpy(codec->extradata, config, length);
	codec->extradata_size = length;
	codec->thread_count = 1;
	codec->max_pixels = most;
	return avcodec_open2(codec, decoder, nullptr) >= 0;
}

// decode decodes a picture, after which the decoder knows nothing of it.
bool Tiles::decode(const void *data, int length) {
	if (av_new_packet(packet, length) < 0)
		throw std::bad_alloc();
	memcpy(packet->data, data, length);
	packet->flags |= AV_PKT_FLAG_KEY;
	int e = avcodec_send_packet(codec, packet);
	av_packet_unref(packet);
	if (e >= 0 && (e = avcodec_send_packet(codec, nullptr)) >= 0)
		e = avcodec_receive_frame(codec, frame);
	avcodec_flush_buffers(codec);
	return e >= 0 && !frame->decode_error_flags;
}

// nits returns the light of a value of PQ (SMPTE ST 2084) or HLG (ARIB STD-B67, on a display of
// 1,000 cd/m2).
double nits(double v, bool pq) {
	if (pq) {
		const double m1 = .1593017578125, m2 = 78.84375, c1 = .8359375, c2 = 18.8515625, c3 = 18.6875;
		double p = std::pow(v, 1 / m2);
		return 10000 * std::pow(std::max(p - c1, 0.) / (c2 - c3 * p), 1 / m1);
	}
	const double a = .17883277, b = .28466892, c = .55991073;
	double scene = v <= .5 ? v * v / 3 : (std::exp((v - c) / a) + b) / 12;
	return 1000 * std::pow(scene, 1.2);
}

// displayed returns the 8-bit sRGB values of 1,024 values of a transfer. White is 203 cd/m2 (ITU-R
// BT.2408).
cv::Mat displayed(bool pq) {
	cv::Mat table(1, 1024, CV_8U);
	for (int i = 0; i < table.cols; i++) {
		double y = std::min(nits(i / 1023., pq) / 203, 1.);
		double s = y <= .0031308 ? 12.92 * y : 1.055 * std::pow(y, 1 / 2.4) - .055;
		table.at<uchar>(i) = cv::saturate_cast<uchar>(255 * s);
	}
	return table;
}

// convert writes the decoded picture as BGR into a Mat that is not larger.
void Tiles::convert(cv::Mat to, int matrix, int full, int transfer) {
	transfer = transfer >= 0 ? transfer : frame->color_trc;
	bool pq = transfer == AVCOL_TRC_SMPTE2084, bright = pq || transfer == AVCOL_TRC_ARIB_STD_B67;
	cv::Mat part = scaler.bgr(frame, bright, matrix, full)(cv::Rect(0, 0, to.cols, to.rows));
	if (!bright) {
		part.copyTo(to);
		return;
	}
	cv::Mat table = displayed(pq);
	for (int y = 0; y < to.rows; y++) {
		const uint16_t *in = part.ptr<uint16_t>(y);
		uchar *out = to.ptr(y);
		for (int x = 0; x < 3 * to.cols; x++)
			out[x] = table.at<uchar>(in[x] >> 6);
	}
}

} // namespace

void *fa_tiles_open(fa_coding coding, const void *config, int length, long long most, char **err) {
	Tiles *tiles = nullptr;
	guard(err, [&] {
		std::unique_ptr<Tiles> t(new Tiles);
		if (t->open(coding, config, length, most))
			tiles = t.release();
	});
	return tiles;
}

int fa_tiles_decode(void *tiles, const void *data, int length, int matrix, int full, int transfer, void *mat, int x,
	int y, int *width, int *height, char **err) {
	int ok = 0;
	guard(err, [&] {
		Tiles &t = *static_cast<Tiles *>(tiles);
		cv::Mat &to = *static_cast<cv::Mat *>(mat);
		if (!t.decode(data, length))
			return;
		*width = t.frame->width;
		*height = t.frame->height;
		if (to.empty())
			to.create(*height, *width, CV_8UC3);
		cv::Rect at = cv::Rect(x, y, *width, *height) & cv::Rect(0, 0, to.cols, to.rows);
		if (at.empty() || at.x != x || at.y != y)
			return;
		t.convert(to(at), matrix, full, transfer);
		ok = 1;
	});
	return ok;
}

void fa_tiles_close(void *tiles) { delete static_cast<Tiles *>(tiles); }
