// Films and streams by FFmpeg's libraries. OpenCV's VideoCapture would hide what they say: which stream is the film, how
// a picture is turned, when it is shown, and why a server gives none.

#include "net.h"
#include "scale.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <opencv2/imgproc.hpp>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
}

#include <sys/mman.h>

namespace {

using Clock = std::chrono::steady_clock;

// What converts the frames of a film, which may outlive it.
struct Shared {
	std::mutex busy;
	Scaler scaler;
};

struct Frame {
	AVFrame *frame;
	std::shared_ptr<Shared> shared;
	~Frame() { av_frame_free(&frame); }
};

// Memory for the pictures of a camera. FFmpeg's own pools keep as much as was ever in use at once, which is most in the
// first seconds: frames wait until it is known how they are turned.
class Blocks {
	std::mutex busy;
	size_t length = 0; // of each block
	void *idle = nullptr; // one that is free

	struct Lent {
		std::shared_ptr<Blocks> of;
		size_t length;
	};

	void give(void *block, size_t n) {
		{
			std::lock_guard<std::mutex> lock(busy);
			if (n == length)
				std::swap(block, idle);
		}
		if (block)
			munmap(block, n);
	}

	static int lend(const std::shared_ptr<Blocks> &from, AVFrame *f, int width, int height) {
		const int align = 64; // for the widest registers
		auto format = AVPixelFormat(f->format);
		int picture = av_image_get_buffer_size(format, width, height, align);
		if (picture < 0)
			return picture;
		size_t n = size_t(picture) + 2 * align; // decoders read beyond the end
		std::unique_ptr<Lent> lent(new (std::nothrow) Lent{from, n}); // FFmpeg knows no exceptions
		if (!lent)
			return AVERROR(ENOMEM);
		void *block = nullptr;
		{
			std::lock_guard<std::mutex> lock(from->busy);
			if (n != from->length) {
				if (from->idle)
					munmap(from->idle, from->length);
				from->idle = nullptr, from->length = n;
			}
			std::swap(block, from->idle);
		}
		if (!block)
			block = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED)
			return AVERROR(ENOMEM);
		auto data = static_cast<uint8_t *>(block);
		f->buf[0] = av_buffer_create(data, n, [](void *of, uint8_t *p) {
			std::unique_ptr<Lent> l(static_cast<Lent *>(of));
			l->of->give(p, l->length);
		}, lent.get(), 0);
		if (!f->buf[0]) {
			munmap(block, n);
			return AVERROR(ENOMEM);
		}
		lent.release();
		f->extended_data = f->data;
		return av_image_fill_arrays(f->data, f->linesize, data, format, width, height, align);
	}

public:
	~Blocks() {
		if (idle)
			munmap(idle, length);
	}

	// serve makes a decoder take its pictures from here.
	static void serve(AVCodecContext *codec, std::shared_ptr<Blocks> *from) {
		if (!(codec->codec->capabilities & AV_CODEC_CAP_DR1))
			return;
		codec->opaque = from;
		codec->get_buffer2 = [](AVCodecContext *c, AVFrame *f, int flags) {
			const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(AVPixelFormat(f->format));
			if (!d || d->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL))
				return avcodec_default_get_buffer2(c, f, flags);
			int width = f->width, height = f->height, each[AV_NUM_DATA_POINTERS];
			avcodec_align_dimensions2(c, &width, &height, each);
			return lend(*static_cast<std::shared_ptr<Blocks> *>(c->opaque), f, width, height);
		};
	}
};

struct Film {
	AVFormatContext *input = nullptr;
	AVCodecContext *codec = nullptr;
	AVStream *stream = nullptr;
	std::vector<bool> films; // which streams have more than one picture
	AVPacket *packet = av_packet_alloc();
	AVFrame *frame = av_frame_alloc();
	std::shared_ptr<Shared> shared = std::make_shared<Shared>();
	std::shared_ptr<Blocks> blocks = std::make_shared<Blocks>();
	std::chrono::milliseconds timeout;
	Clock::time_point until;
	bool drained = false;
	bool live = false;
	double last = 0, spoilt = 0; // in milliseconds: the time of the last frame, and for how long frames are damaged

	explicit Film(int ms) : timeout(ms) {
		if (!packet || !frame)
			throw std::bad_alloc();
		av_log_set_level(AV_LOG_QUIET); // what goes wrong is returned
	}
	Film(const Film &) = delete;
	~Film() {
		begin();
		av_frame_free(&frame);
		av_packet_free(&packet);
		avcodec_free_context(&codec);
		avformat_close_input(&input);
	}

	void begin() { until = Clock::now() + timeout; }
	bool late() const { return timeout.count() > 0 && Clock::now() > until; }
	int attach(const char *name, const char *host, const char *served, const AVInputFormat *format);
	int connect(const char *name, const char *host, const char *served);
	void leaveCovers();
	int open(const char *name, const char *host, const char *served);
	void describe(fa_film_about *about) const;
	void hand(fa_shot *out);
	double since(int64_t at) const;
	double end() const;
	double time(int64_t at) const;
	bool lost(double ms);
	int next(bool packets, fa_shot *out);
	int decode(fa_shot *out);
};

// film reports whether a stream may be one, and not the picture of a cover.
bool film(const AVStream *s) {
	return s->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !(s->disposition & AV_DISPOSITION_ATTACHED_PIC) &&
		s->nb_frames != 1;
}

// regular reports whether FFmpeg's demuxer of motion JPEG over HTTP can read the part that begins at pb, and leaves pb
// there. It refuses another type than image/jpeg, a parameter and no type; without a length it looks for a boundary after
// a carriage return, and with line feeds alone it never finds one.
bool regular(AVIOContext *pb) {
	const size_t most = 4096;
	int64_t begin = avio_tell(pb);
	std::string line;
	bool typed = false, sized = false, bare = false;
	for (size_t n = 0; n < most && !avio_feof(pb); n++) {
		char c = char(avio_r8(pb));
		if (c != '\n') {
			line += char(tolower(c));
			continue;
		}
		if (line.empty() || line.back() != '\r')
			bare = true;
		else
			line.pop_back();
		if (line.empty())
			return avio_seek(pb, begin, SEEK_SET) >= 0 && typed && (sized || !bare);
		size_t colon = line.find(':');
		std::string name = line.substr(0, colon), value = colon == std::string::npos ? "" : line.substr(colon + 1);
		value.erase(0, value.find_first_not_of(' '));
		value.erase(value.find_last_not_of(' ') + 1);
		typed |= name == "content-type" && value == "image/jpeg";
		sized |= name == "content-length";
		line.clear();
	}
	return false;
}

// attach opens the input, of a format or of what FFmpeg takes it for. It returns 0 or FFmpeg's number of an error.
int Film::attach(const char *name, const char *host, const char *served, const AVInputFormat *format) {
	avformat_close_input(&input);
	input = avformat_alloc_context();
	if (!input)
		throw std::bad_alloc();
	input->interrupt_callback = {[](void *f) { return int(static_cast<Film *>(f)->late()); }, this};
	AVDictionary *options = nullptr;
	if (!strncasecmp(name, "rtsp", 4)) {
		av_dict_set(&options, "rtsp_transport", "tcp", 0);
		av_dict_set(&options, "fpsprobesize", "2", 0); // a camera's rate is not used: 20 frames would be waited for
	}
	if (*host) {
		av_dict_set(&options, "headers", (std::string("Host: ") + host + "\r\n").c_str(), 0);
		av_dict_set(&options, "verifyhost", served, 0);
	}
	int e = avformat_open_input(&input, name, format, &options); // frees the input if it fails
	av_dict_free(&options);
	if (e < 0)
		return e;
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(61, 1, 100)
	// Each tile of a HEIC or AVIF picture is a stream: the first one would stand for the picture.
	for (unsigned i = 0; i < input->nb_stream_groups; i++)
		if (input->stream_groups[i]->type == AV_STREAM_GROUP_PARAMS_TILE_GRID)
			return AVERROR_INVALIDDATA;
#endif
	if (!strcmp(input->iformat->name, "mpjpeg") && !regular(input->pb))
		return AVERROR_INVALIDDATA;
	// A stream that is not there, or that nobody can decode, would be waited for.
	if (!(input->ctx_flags & AVFMTCTX_NOHEADER)) {
		if ((e = av_find_best_stream(input, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0)) < 0)
			return e;
		if (input->streams[e]->codecpar->codec_id == AV_CODEC_ID_NONE && !strcmp(input->iformat->name, "rtsp"))
			return AVERROR_DECODER_NOT_FOUND;
	}
	return avformat_find_stream_info(input, nullptr);
}

// connect is attach, and what FFmpeg's demuxer of motion JPEG over HTTP cannot read is read by that of JPEGs in a row,
// which gives each frame when the next one begins.
int Film::connect(const char *name, const char *host, const char *served) {
	int e = attach(name, host, served, nullptr);
	if (e != AVERROR_INVALIDDATA || strncasecmp(name, "http", 4))
		return e;
	int other = attach(name, host, served, av_find_input_format("mjpeg"));
	if (other >= 0 && input->nb_streams > 0 && input->streams[0]->codecpar->width > 0)
		return other;
	return late() ? AVERROR_EXIT : e;
}

// leaveCovers counts the first pictures of each stream, as not every container says how many there are.
void Film::leaveCovers() {
	const int enough = 32;
	std::vector<int> pictures(films.size());
	for (int most = 0; most < enough && av_read_frame(input, packet) >= 0; av_packet_unref(packet)) {
		size_t i = packet->stream_index;
		if (i < films.size() && films[i])
			most = std::max(most, ++pictures[i]);
	}
	for (size_t i = 0; i < films.size(); i++)
		films[i] = films[i] && pictures[i] != 1;
}

// open returns 0 or FFmpeg's number of an error.
int Film::open(const char *name, const char *host, const char *served) {
	begin();
	int e = connect(name, host, served);
	if (e < 0)
		return late() ? AVERROR_EXIT : e;
	int best = av_find_best_stream(input, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
	if (best < 0)
		return AVERROR_STREAM_NOT_FOUND;
	for (unsigned i = 0; i < input->nb_streams; i++)
		films.push_back(film(input->streams[i]));
	if (std::count(films.begin(), films.end(), true) > 1 && input->pb && (input->pb->seekable & AVIO_SEEKABLE_NORMAL)) {
		leaveCovers();
		if ((e = connect(name, host, served)) < 0)
			return late() ? AVERROR_EXIT : e;
		if (input->nb_streams != films.size()) // the file has changed meanwhile
			return AVERROR_INVALIDDATA;
	}
	auto first = std::find(films.begin(), films.end(), true);
	stream = input->streams[first == films.end() ? best : first - films.begin()];
	for (unsigned i = 0; i < input->nb_streams; i++)
		if (input->streams[i] != stream)
			input->streams[i]->discard = AVDISCARD_ALL;
	const AVCodec *decoder = avcodec_find_decoder(stream->codecpar->codec_id);
	if (!decoder)
		return AVERROR_DECODER_NOT_FOUND;
	codec = avcodec_alloc_context3(decoder);
	if (!codec)
		return AVERROR(ENOMEM);
	if ((e = avcodec_parameters_to_context(codec, stream->codecpar)) < 0)
		return e;
	codec->max_pixels = FA_MOST_PIXELS;
	codec->pkt_timebase = stream->time_base;
	// The packets of motion JPEG are mostly decoded elsewhere, one by one. Cameras share the processors, and two threads
	// for one film take a twentieth more of them.
	live = strstr(name, "://") && !(input->pb && avio_size(input->pb) > 0);
	codec->thread_count = codec->codec_id == AV_CODEC_ID_MJPEG || strstr(name, "://") ? 1 : 0;
	if (live)
		Blocks::serve(codec, &blocks);
	return avcodec_open2(codec, decoder, nullptr);
}

void Film::describe(fa_film_about *about) const {
	about->rate = av_q2d(stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate);
	double from = 0;
	if (stream->start_time != AV_NOPTS_VALUE)
		from = since(stream->start_time);
	about->length = end();
	if (stream->nb_frames > 0 && about->rate > 0) // what is left of a file that is cut off is less
		about->length = std::max(about->length, from + double(stream->nb_frames) / about->rate);
	double frames = stream->nb_frames > 0 ? double(stream->nb_frames)
		: std::floor((about->length - from) * about->rate + .5);
	about->frames = frames >= 1 && frames < INT_MAX ? int(frames) : -1;
	about->others = int(std::count(films.begin(), films.end(), true)) - (films[stream->index] ? 1 : 0);
	std::string format = input->iformat->name;
	bool picture = format.size() > 5 && format.compare(format.size() - 5, 5, "_pipe") == 0;
	about->ends = !picture && format != "rtsp" && about->frames != 1 &&
		(about->frames > 1 || (input->pb && avio_size(input->pb) > 0));
	about->jpeg = codec->codec_id == AV_CODEC_ID_MJPEG;
	about->width = codec->width;
	about->height = codec->height;
	const uint8_t *matrix = nullptr;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
	auto side = av_packet_side_data_get(stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data,
		AV_PKT_DATA_DISPLAYMATRIX);
	if (side)
		matrix = side->data;
#else
	matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
	double turn = 0;
	if (matrix) {
		int32_t shown[9];
		memcpy(shown, matrix, sizeof shown);
		if (double(shown[0]) * shown[4] < double(shown[1]) * shown[3]) // also mirrored, which has no angle
			av_display_matrix_flip(shown, 1, 0);
		turn = -av_display_rotation_get(shown);
	}
	about->turn = std::isnan(turn) ? 0 : int(std::lround(turn) + 360) % 360;
	about->stretch = av_q2d(av_guess_sample_aspect_ratio(input, stream, nullptr));
}

// hand hands out the decoded frame, and keeps none of it.
void Film::hand(fa_shot *out) {
	std::unique_ptr<Frame> f(new Frame{av_frame_alloc(), shared});
	if (!f->frame)
		throw std::bad_alloc();
	av_frame_move_ref(f->frame, frame);
	out->width = f->frame->width;
	out->height = f->frame->height;
	out->damaged = f->frame->decode_error_flags != 0;
	out->frame = f.release();
}

// since returns a time of the stream in seconds since the container begins: with its sound, perhaps,
// as players show it. A stream of a camera begins with its first picture, and so does what begins
// within a tenth of a second.
double Film::since(int64_t at) const {
	int64_t start = stream->start_time;
	if (start == AV_NOPTS_VALUE)
		return std::max(0., double(at) * av_q2d(stream->time_base));
	double after = 0;
	if (!live && input->start_time != AV_NOPTS_VALUE)
		after = double(start) * av_q2d(stream->time_base) - double(input->start_time) / AV_TIME_BASE;
	if (std::abs(after) <= .1)
		after = 0;
	return std::max(0., double(at - start) * av_q2d(stream->time_base) + after);
}

// end returns when the pictures end, in seconds since the container begins, or 0 if nothing says
// it: the sound may go on.
double Film::end() const {
	if (stream->duration > 0) {
		int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
		return since(start + stream->duration);
	}
	auto tag = av_dict_get(stream->metadata, "DURATION", nullptr, 0); // Matroska
	unsigned hours = 0, minutes = 0;
	double seconds = 0;
	if (tag && sscanf(tag->value, "%9u:%9u:%9lf", &hours, &minutes, &seconds) == 3 && seconds >= 0)
		return hours * 3600. + minutes * 60 + seconds;
	return input->duration > 0 ? double(input->duration) / AV_TIME_BASE : 0;
}

// time returns a time of the stream, in milliseconds since the container begins.
double Film::time(int64_t at) const {
	return at == AV_NOPTS_VALUE ? 0 : since(at) * 1000;
}

// decode decodes the packet that next has handed out. It returns 0 if the packet holds no frame.
int Film::decode(fa_shot *out) {
	if (avcodec_send_packet(codec, packet) < 0 || avcodec_receive_frame(codec, frame) < 0)
		return 0;
	hand(out);
	return 1;
}

// lost reports whether the frames of a stream have been damaged for two seconds of it: a camera has come back behind a
// relay with another resolution, and the decoder was never told. A good frame makes up for four damaged ones.
bool Film::lost(double ms) {
	double step = ms > last ? std::min(ms - last, 1000.) : 40; // the times of a relay may jump, or be missing
	last = ms;
	if (frame->decode_error_flags)
		spoilt += step;
	else
		spoilt = std::max(0., spoilt - 4 * step);
	return spoilt >= 2000;
}

// next hands out the next frame, or the next packet. It returns 1, or 0 at the end, or FFmpeg's number of an error.
int Film::next(bool packets, fa_shot *out) {
	begin();
	while (!late()) {
		int e = packets ? AVERROR(EAGAIN) : avcodec_receive_frame(codec, frame);
		if (e == AVERROR_EOF)
			return 0;
		if (e >= 0) {
			out->ms = time(frame->best_effort_timestamp);
			if (live && lost(out->ms))
				return FA_SPOILT;
			hand(out);
			return 1;
		}
		av_packet_unref(packet);
		e = av_read_frame(input, packet);
		if (e == AVERROR(EAGAIN))
			continue;
		if (e < 0) { // the end, or that of the connection
			if (packets || drained)
				return late() ? AVERROR_EXIT : 0;
			drained = true;
			avcodec_send_packet(codec, nullptr);
			continue;
		}
		if (packet->stream_index != stream->index || packet->size == 0)
			continue;
		if (packets) {
			out->data = packet->data;
			out->length = packet->size;
			out->ms = time(packet->pts == AV_NOPTS_VALUE ? packet->dts : packet->pts);
			return 1;
		}
		avcodec_send_packet(codec, packet); // a damaged one is left out
	}
	return AVERROR_EXIT;
}

} // namespace

void *fa_film_open(const char *name, const char *host, const char *served, int timeout_ms, fa_film_about *about,
	int *failed, char **err) {
	Film *film = nullptr;
	guard(err, [&] {
		std::unique_ptr<Film> f(new Film(timeout_ms));
		*failed = f->open(name, host, served);
		if (*failed < 0)
			return;
		f->describe(about);
		film = f.release();
	});
	return film;
}

int fa_film_next(void *film, int packets, fa_shot *out, char **err) {
	int e = 0;
	guard(err, [&] { e = static_cast<Film *>(film)->next(packets, out); });
	return e;
}

int fa_film_decode(void *film, fa_shot *out, char **err) {
	int e = 0;
	guard(err, [&] { e = static_cast<Film *>(film)->decode(out); });
	return e;
}

void fa_film_close(void *film) { delete static_cast<Film *>(film); }

void fa_frame_bgr(void *frame, void *dst, char **err) {
	guard(err, [&] {
		Frame *f = static_cast<Frame *>(frame);
		std::lock_guard<std::mutex> lock(f->shared->busy);
		*static_cast<cv::Mat *>(dst) = f->shared->scaler.take(f->frame);
	});
}

int fa_frame_grey(void *frame, int width, int height, void *dst, char **err) {
	int ok = 0;
	guard(err, [&] {
		const AVFrame *in = static_cast<Frame *>(frame)->frame;
		const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(AVPixelFormat(in->format));
		const uint64_t others = AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM |
			AV_PIX_FMT_FLAG_HWACCEL;
		if (!d || d->flags & others || d->comp[0].depth != 8 || d->comp[0].step != 1 || in->linesize[0] < in->width)
			return;
		cv::Mat luma(in->height, in->width, CV_8UC1, in->data[0], in->linesize[0]), points;
		cv::Mat &to = *static_cast<cv::Mat *>(dst);
		cv::Size size(width, height), twice(2 * width, 2 * height);
		if (twice.width < in->width && twice.height < in->height)
			cv::resize(luma, points, twice, 0, 0, cv::INTER_LINEAR);
		else
			points = luma;
		cv::resize(points, to, size, 0, 0, cv::INTER_AREA);
		if (!fullRange(in, d)) // black is 16, and white 235
			to.convertTo(to, CV_8U, 255. / 219, -16 * 255. / 219);
		ok = 1;
	});
	return ok;
}

void fa_frame_free(void *frame) { delete static_cast<Frame *>(frame); }
