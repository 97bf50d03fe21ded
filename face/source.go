// SPDX-License-Identifier: Apache-2.0

package face

import "errors"

// Errors of a source of frames. Package facedet opens sources in this process, and package eye in another process. For
// a file or device that is missing or forbidden the errors wrap fs.ErrNotExist or fs.ErrPermission.
var (
	ErrNoCamera = errors.New("no such camera")
	ErrNotVideo = errors.New("neither a video nor an image that can be read")
	ErrNoImages = errors.New("no images in the folder")
	ErrTimeout  = errors.New("the source gave no frame in time")
	ErrScheme   = errors.New("unsupported kind of URL")
	ErrServer   = errors.New("the server gives no video")
)

// Count says how many frames a source has, as far as this is known.
type Count struct {
	Declared int `json:"declared"` // by the container, or the number of files; -1 if unknown
	Read     int `json:"read"`
	Dropped  int `json:"dropped,omitempty"` // frames that were read and skipped, because newer frames had come
	Damaged  int `json:"damaged"`           // image files that could not be read and were skipped
}
