#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A JPEG whose EXIF says "turn by 90 degrees", made into AVIF and HEIC by libavif 0.11.1 and libheif 1.15.1 (Debian 12:
# 0.11.1-1+deb12u1, 1.15.1-1+deb12u1), and back. avifenc turns by a property (irot) and keeps the EXIF beside it. heif-convert
# applies the one and copies the other: whoever shows its JPEG turns twice. avifdec applies neither and writes no EXIF: the
# picture lies down. heif-enc keeps the EXIF alone, which readers of HEIF ignore.
# Expected: whatever way it goes, the picture stands upright once: turned pixels, or EXIF that says so, and never both.
# Seen (size and EXIF of a JPEG of 160x96, 6): AVIF by heif-convert 96x160, 6; AVIF by avifdec 160x96, none; HEIC has no
# irot.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='libavif-bin=0.11.1-1+deb12u1 libheif-examples=1.15.1-1+deb12u1 libimage-exiftool-perl=12.57+dfsg-1
	ffmpeg=7:5.1.9-0+deb12u1'
for p in $packages; do
	[ "$(dpkg-query -W -f '${Package}=${Version}' "${p%%=*}" 2>/dev/null)" = "$p" ] || missing=1
done
if [ -n "${missing-}" ]; then
	cd "$dir"
	for p in $packages; do
		apt-cache depends --recurse --important "$p" | grep '^[a-z]' | xargs apt-get -q download "$p" >apt.log
	done
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	PATH="$dir/root/usr/bin:$PATH"
	PERL5LIB="$dir/root/usr/share/perl5"
	LD_LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	export PATH PERL5LIB LD_LIBRARY_PATH
fi
cd "$dir"
ffmpeg -v error -f lavfi -i testsrc=size=160x96 -frames:v 1 -q:v 2 a.jpg
exiftool -q -overwrite_original -n -Orientation=6 a.jpg
avifenc -s 9 a.jpg a.avif >log
heif-enc a.jpg -o a.heic >>log 2>&1
heif-convert a.avif by-libheif.jpg >>log
avifdec a.avif by-libavif.jpg >>log
tell() { # file, tag
	exiftool -n -s3 "-$2" "$1"
}
libheif=$(tell by-libheif.jpg ImageSize),$(tell by-libheif.jpg Orientation)
libavif=$(tell by-libavif.jpg ImageSize),$(tell by-libavif.jpg Orientation)
turned="$(tell a.avif Rotation) and $(tell a.heic Rotation)"
echo "by heif-convert $libheif; by avifdec $libavif; turned in AVIF and HEIC: $turned"
[ "$libheif" = '96 160,6' ] && [ "$libavif" = '160 96,' ] && [ "$turned" = '270 and ' ]
