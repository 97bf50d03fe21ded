// ONNX Runtime by its C interface. Every function returns a status instead of throwing.

#include "loader.h"
#include "net.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include <dlfcn.h>

namespace {

// The places of functions in the table of the interface. The table only grows: these places have not changed since
// version 6 of the interface.
enum Place {
	GetErrorMessage = 2, CreateEnv = 3, DisableTelemetryEvents = 6, CreateSessionFromArray = 8, Run = 9,
	CreateSessionOptions = 10, DisableMemPattern = 17, DisableCpuMemArena = 19, SetSessionGraphOptimizationLevel = 23,
	SetIntraOpNumThreads = 24, SetInterOpNumThreads = 25, SessionGetInputCount = 30, SessionGetOutputCount = 31,
	SessionGetInputName = 36, SessionGetOutputName = 37, CreateTensorWithDataAsOrtValue = 49, GetTensorMutableData = 51,
	GetTensorElementType = 60, GetDimensionsCount = 61, GetDimensions = 62, GetTensorTypeAndShape = 65,
	CreateCpuMemoryInfo = 69, AllocatorFree = 76, GetAllocatorWithDefaultOptions = 78, ReleaseStatus = 93,
	ReleaseSession = 95, ReleaseValue = 96, ReleaseTensorTypeAndShapeInfo = 99, ReleaseSessionOptions = 100,
};

enum {
	Version = 17, Fatal = 4, AllOptimizations = 99, Float = 1, DeviceAllocator = 0, DefaultMemory = 0,
};

struct Base {
	void **(*table)(uint32_t version);
	const char *(*version)();
};

void **table; // set once all of the following are
const char *version;
void *env, *memory, *allocator;

template <typename R, typename... A> R (*function(void **t, Place p))(A...) {
	return reinterpret_cast<R (*)(A...)>(t[p]);
}

// The types of the arguments are those of the C interface.
template <typename... A> void call(void **t, Place p, A... args) {
	if (void *status = function<void *, A...>(t, p)(args...)) {
		std::string text = function<const char *, const void *>(t, GetErrorMessage)(status);
		function<void, void *>(t, ReleaseStatus)(status);
		throw std::runtime_error(text);
	}
}

// Something that a function made, and the function that releases it.
struct Handle {
	void *p = nullptr;
	Place release;
	void **of;
	explicit Handle(Place r, void **t = table) : release(r), of(t) {}
	Handle(const Handle &) = delete;
	~Handle() {
		if (p)
			function<void, void *>(of, release)(p);
	}
};

struct Session : Net {
	Handle session{ReleaseSession};
	std::string input;
	std::vector<std::string> outputs;

	Session(const void *model, size_t length) {
		Handle options(ReleaseSessionOptions);
		call(table, CreateSessionOptions, &options.p);
		call(table, SetSessionGraphOptimizationLevel, options.p, int(AllOptimizations));
		// One thread is the caller's: there is no other, and none that spins.
		call(table, SetIntraOpNumThreads, options.p, 1);
		call(table, SetInterOpNumThreads, options.p, 1);
		// Memory comes from malloc and goes back to it: an arena keeps the most that any run needed, and the patterns
		// are a second piece as large as the first run's.
		call(table, DisableCpuMemArena, options.p);
		call(table, DisableMemPattern, options.p);
		call(table, CreateSessionFromArray, env, model, length, options.p, &session.p);
		size_t n = 0;
		call(table, SessionGetInputCount, session.p, &n);
		if (n != 1)
			throw std::runtime_error("the network has " + std::to_string(n) + " inputs");
		input = name(SessionGetInputName, 0);
		call(table, SessionGetOutputCount, session.p, &n);
		for (size_t i = 0; i < n; i++)
			outputs.push_back(name(SessionGetOutputName, i));
		if (outputs.empty())
			throw std::runtime_error("the network has no output");
	}

	std::string name(Place p, size_t i) {
		char *text = nullptr;
		call(table, p, session.p, i, allocator, &text);
		std::string s = text;
		call(table, AllocatorFree, allocator, static_cast<void *>(text));
		return s;
	}

	void run(const char **names, int n, fa_tensor *out) override {
		std::vector<int64_t> shape(blob.size.p, blob.size.p + blob.dims);
		Handle x(ReleaseValue);
		call(table, CreateTensorWithDataAsOrtValue, memory, static_cast<void *>(blob.data),
			blob.total() * sizeof(float), shape.data(), shape.size(), int(Float), &x.p);
		std::vector<const char *> wanted(names, names + n);
		for (auto &w : wanted)
			if (!w[0])
				w = outputs.back().c_str();
		struct Values : std::vector<void *> {
			using std::vector<void *>::vector;
			~Values() {
				for (void *v : *this)
					if (v)
						function<void, void *>(table, ReleaseValue)(v);
			}
		} y(n, nullptr);
		const char *in = input.c_str();
		call(table, Run, session.p, static_cast<const void *>(nullptr), &in, &x.p, size_t(1), wanted.data(),
			wanted.size(), y.data());
		for (int i = 0; i < n; i++) {
			Handle info(ReleaseTensorTypeAndShapeInfo);
			int type = 0;
			size_t dims = 0;
			void *data = nullptr;
			call(table, GetTensorTypeAndShape, y[i], &info.p);
			call(table, GetTensorElementType, info.p, &type);
			call(table, GetDimensionsCount, info.p, &dims);
			if (type != Float || dims > 8)
				throw std::runtime_error("output is not a float tensor of at most 8 dimensions");
			int64_t wide[8];
			int sizes[8];
			call(table, GetDimensions, info.p, wide, dims);
			for (size_t d = 0; d < dims; d++)
				sizes[d] = int(wide[d]);
			call(table, GetTensorMutableData, y[i], &data);
			store(&out[i], static_cast<float *>(data), int(dims), sizes);
		}
	}
};

// Of a copy of a loader: the networks that the loader opened, and their content.
struct Prepared {
	std::string model;
	std::unique_ptr<Session> session;
};

std::vector<Prepared> *prepared;

} // namespace

void prepare(const std::string &model) {
	char *err = nullptr;
	guard(&err, [&] {
		std::unique_ptr<Session> s(new Session(model.data(), model.size()));
		if (!prepared)
			prepared = new std::vector<Prepared>;
		prepared->push_back({model, std::move(s)});
	});
	free(err); // who opens it is told
}

const char *fa_ort_load(const char *path, char **err) {
	guard(err, [&] {
		if (table)
			return;
		// Else it writes a number of the device and reports of use below ~/.cache and /tmp, and sends them to its
		// publisher, before DisableTelemetryEvents can be called.
		setenv("ORT_DISABLE_TELEMETRY", "1", 1);
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!library)
			throw std::runtime_error(dlerror());
		auto base = reinterpret_cast<const Base *(*)()>(dlsym(library, "OrtGetApiBase"));
		if (!base) {
			dlclose(library);
			throw std::runtime_error("it is not ONNX Runtime");
		}
		void **t = base()->table(Version);
		if (!t)
			throw std::runtime_error(std::string("its version ") + base()->version() + " is older than 1.17");
		call(t, CreateEnv, int(Fatal), "faceauth", &env);
		call(t, DisableTelemetryEvents, static_cast<const void *>(env));
		call(t, CreateCpuMemoryInfo, int(DeviceAllocator), int(DefaultMemory), &memory);
		call(t, GetAllocatorWithDefaultOptions, &allocator);
		version = base()->version();
		table = t;
		note(path, strlen(path));
	});
	return version;
}

void *fa_ort_open(const void *model, size_t length, char **err) {
	Net *net = nullptr;
	guard(err, [&] {
		if (!table)
			throw std::runtime_error("ONNX Runtime is not loaded");
		if (prepared)
			for (Prepared &p : *prepared)
				if (p.session && p.model.size() == length && !memcmp(p.model.data(), model, length)) {
					net = p.session.release();
					return;
				}
		net = new Session(model, length);
		note(model, length);
	});
	return net;
}
