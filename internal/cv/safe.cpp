#include "net.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include <malloc.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/dnn.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/objdetect.hpp>
#include <opencv2/videoio.hpp>

namespace {

cv::Mat &mat(void *p) { return *static_cast<cv::Mat *>(p); }

struct InOpenCV : Net {
	cv::dnn::Net net;
	explicit InOpenCV(const char *path) : net(cv::dnn::readNetFromONNX(path)) {}

	void run(const char **names, int n, fa_tensor *out) override {
		net.setInput(blob);
		std::vector<cv::Mat> results;
		if (n == 1 && names[0][0] == 0)
			results.push_back(net.forward());
		else
			net.forward(results, std::vector<cv::String>(names, names + n));
		for (int i = 0; i < n; i++) {
			cv::Mat m = results.at(i);
			if (m.depth() != CV_32F || m.channels() != 1 || m.dims > 8)
				throw std::runtime_error("output is not a float tensor of at most 8 dimensions");
			if (!m.isContinuous())
				m = m.clone();
			store(&out[i], m.ptr<float>(), m.dims, m.size.p);
		}
	}
};

// fill writes (x - mean)·scale of each channel of a picture, scaled to the input's size. cv::dnn::blobFromImage gives the
// same by more passes over new memory.
void fill(cv::Mat &blob, cv::Mat src, const fa_blob &in) {
	cv::Size size(in.width, in.height);
	if (in.gray)
		cv::cvtColor(src, src, cv::COLOR_BGR2GRAY);
	if (src.size() != size)
		cv::resize(src, src, size, 0, 0, cv::INTER_LINEAR);
	int channels = src.channels(), shape[4] = {1, channels, in.height, in.width};
	blob.create(4, shape, CV_32F);
	std::vector<cv::Mat> planes;
	cv::split(src, planes);
	for (int c = 0; c < channels; c++) {
		cv::Mat to(in.height, in.width, CV_32F, blob.ptr(0, c));
		planes[in.rgb ? channels - 1 - c : c].convertTo(to, CV_32F, in.scale, -in.mean[c] * in.scale);
	}
}

} // namespace

// What goes wrong is returned as an error; OpenCV and FFmpeg would print it as well.
void fa_quiet(void) {
	cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
	setenv("OPENCV_FFMPEG_LOGLEVEL", "-8", 0); // AV_LOG_QUIET
	cv::redirectError([](int, const char *, const char *, const char *, int, void *) { return 0; });
}

void fa_one_thread(void) {
	cv::setNumThreads(1);
	// Pictures are freed with each frame: without this their pages go back to the system and are mapped again.
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

// Above 32 MiB malloc maps each picture, and nothing changes that but this.
void fa_reuse(void) {
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

void fa_trim(void) { malloc_trim(0); }

void fa_decode(const void *data, int length, int how, void *dst, char **err) {
	guard(err, [&] {
		cv::Mat in(1, length, CV_8UC1, const_cast<void *>(data));
		mat(dst) = cv::imdecode(in, how);
	});
}

void fa_processor(char *name, size_t size) {
#if defined(__x86_64__) || defined(__i386__)
	unsigned brand[13] = {}, model = 0, b, c, d;
	__get_cpuid(1, &model, &b, &c, &d);
	for (unsigned i = 0; i < 3; i++)
		__get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2], &brand[4 * i + 3]);
	snprintf(name, size, "%s (%x)", reinterpret_cast<char *>(brand), model);
#elif defined(__aarch64__)
	unsigned long long midr = 0;
	if (getauxval(AT_HWCAP) & HWCAP_CPUID)
		asm("mrs %0, midr_el1" : "=r"(midr));
	snprintf(name, size, "arm64 (%llx)", midr);
#else
	snprintf(name, size, "unknown");
#endif
}

void *fa_net_open(const char *path, char **err) {
	Net *net = nullptr;
	guard(err, [&] { net = new InOpenCV(path); });
	return net;
}

void fa_net_forward(void *net, void *img, const fa_blob *in, const char **outputs, int n, fa_tensor *out,
	long long *ns, char **err) {
	for (int i = 0; i < n; i++)
		out[i] = fa_tensor{};
	guard(err, [&] {
		Flush denormals;
		Net *to = static_cast<Net *>(net);
		fill(to->blob, mat(img), *in);
		auto start = std::chrono::steady_clock::now();
		to->run(outputs, n, out);
		*ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
	});
}

void fa_net_close(void *net) { delete static_cast<Net *>(net); }

void *fa_camera_open(int index, int *packed, char **err) {
	cv::VideoCapture *c = nullptr;
	guard(err, [&] {
		std::unique_ptr<cv::VideoCapture> device(new cv::VideoCapture());
		if (!device->open(index, cv::CAP_V4L2))
			throw std::runtime_error("the camera cannot be opened");
		*packed = device->get(cv::CAP_PROP_FOURCC) == cv::VideoWriter::fourcc('M', 'J', 'P', 'G') &&
			device->set(cv::CAP_PROP_CONVERT_RGB, 0);
		c = device.release();
	});
	return c;
}

int fa_camera_read(void *c, void *dst, char **err) {
	bool ok = false;
	guard(err, [&] { ok = static_cast<cv::VideoCapture *>(c)->read(mat(dst)); });
	return ok;
}

void fa_camera_close(void *c) {
	char *err = nullptr;
	guard(&err, [&] { delete static_cast<cv::VideoCapture *>(c); });
	free(err);
}

void *fa_cascade_open(const char *path, char **err) {
	cv::CascadeClassifier *c = nullptr;
	guard(err, [&] {
		c = new cv::CascadeClassifier();
		if (!c->load(path))
			throw std::runtime_error("it is not a cascade");
	});
	if (*err) {
		delete c;
		return nullptr;
	}
	return c;
}

int fa_cascade_detect(void *c, void *gray, int smallest, int *boxes, int most, char **err) {
	int n = 0;
	guard(err, [&] {
		std::vector<cv::Rect> found;
		static_cast<cv::CascadeClassifier *>(c)->detectMultiScale(
			mat(gray), found, 1.1, 5, 0, cv::Size(smallest, smallest));
		for (const auto &r : found) {
			if (n == most)
				break;
			int *b = boxes + 4 * n++;
			b[0] = r.x, b[1] = r.y, b[2] = r.width, b[3] = r.height;
		}
	});
	return n;
}

void fa_cascade_close(void *c) { delete static_cast<cv::CascadeClassifier *>(c); }
