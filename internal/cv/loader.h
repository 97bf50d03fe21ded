// SPDX-License-Identifier: Apache-2.0

#ifndef FACEAUTH_LOADER_H
#define FACEAUTH_LOADER_H

#include <cstddef>
#include <string>

// note tells the loader that waits for it which library or network this process has opened.
void note(const void *data, size_t length);

// prepare opens a network for the copies of this process: fa_ort_open of the same content returns it.
void prepare(const std::string &model);

#endif
