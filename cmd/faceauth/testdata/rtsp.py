# SPDX-License-Identifier: Apache-2.0
"""An RTSP camera for tests: shows the pictures DIR/00000.jpg and so on, again and again, as H.264 at port PORT.

As go2rtc and Frigate do, it answers by TCP only, and has sound beside the video."""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

folder, port = sys.argv[1:]
Gst.init(None)
needed = ("multifilesrc", "jpegdec", "videoconvert", "x264enc", "rtph264pay", "audiotestsrc", "alawenc", "rtppcmapay")
missing = [x for x in needed if not Gst.ElementFactory.find(x)]
if missing:
    sys.exit("GStreamer has no " + ", ".join(missing))
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(port)
factory = GstRtspServer.RTSPMediaFactory()
factory.set_shared(True)
factory.set_protocols(GstRtsp.RTSPLowerTrans.TCP)
factory.set_launch(
    f'( multifilesrc location="{folder}/%05d.jpg" loop=true caps="image/jpeg,framerate=10/1" ! jpegdec ! videoconvert'
    " ! video/x-raw,format=I420 ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay name=pay0 pt=96"
    " audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay1 )"
)
server.get_mount_points().add_factory("/live", factory)
if not server.attach(None):
    sys.exit("port " + port + " cannot be used")
GLib.MainLoop().run()
