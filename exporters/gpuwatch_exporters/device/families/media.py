"""Engines for video, pictures and optical flow."""

from gpuwatch_exporters.device.family import gauge

ENCODER = gauge("gpuwatch_gpu_encoder_utilization_ratio", "Share of the last sample period in which video was encoded.")
DECODER = gauge("gpuwatch_gpu_decoder_utilization_ratio", "Share of the last sample period in which video was decoded.")
JPEG = gauge("gpuwatch_gpu_jpeg_utilization_ratio", "Share of the last sample period in which the JPEG engine worked.")
OPTICAL_FLOW = gauge(
    "gpuwatch_gpu_optical_flow_utilization_ratio", "Share of the last sample period in which the flow engine worked."
)
SESSIONS = gauge("gpuwatch_gpu_encoder_sessions", "Sessions of the video encoder.")
FRAMES = gauge("gpuwatch_gpu_encoder_frames_per_second", "Mean frames per second of the encoder's sessions.")
LATENCY = gauge("gpuwatch_gpu_encoder_latency_seconds", "Mean time to encode a frame.")
CAPTURE_SESSIONS = gauge("gpuwatch_gpu_capture_sessions", "Sessions that capture the frame buffer.")
CAPTURE_FRAMES = gauge("gpuwatch_gpu_capture_frames_per_second", "Mean frames per second of the capture sessions.")
CAPTURE_LATENCY = gauge("gpuwatch_gpu_capture_latency_seconds", "Mean time to capture a frame.")
