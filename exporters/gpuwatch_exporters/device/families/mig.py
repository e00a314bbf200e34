"""MIG: the mode of a device, what its instances have, and what could still be created."""

from gpuwatch_exporters.device.family import gauge

ENABLED = gauge("gpuwatch_gpu_mig_enabled", "1 when the device is in MIG mode, 0 when it could be and is not.")
PENDING = gauge(
    "gpuwatch_gpu_mig_pending_enabled", "MIG mode after the next reset of the device: 1 enabled, 0 disabled."
)
INSTANCES = gauge("gpuwatch_gpu_mig_instances", "MIG instances that exist on the device; absent outside MIG mode.")
PROFILE_FREE = gauge(
    "gpuwatch_gpu_mig_profile_free",
    "GPU instances of this profile that could be created now, beside those that exist; profiles share the room.",
    "profile",
)
PROFILE_LIMIT = gauge(
    "gpuwatch_gpu_mig_profile_limit", "GPU instances of this profile that an empty device takes.", "profile"
)
COMPUTE_SLICES = gauge("gpuwatch_gpu_mig_instance_compute_slices", "Compute slices of the MIG instance.")
INSTANCE_SLICES = gauge(
    "gpuwatch_gpu_mig_instance_gpu_slices", "Compute slices of the GPU instance in which the MIG instance lies."
)
MULTIPROCESSORS = gauge("gpuwatch_gpu_mig_instance_multiprocessors", "Streaming multiprocessors of the MIG instance.")
COPY_ENGINES = gauge("gpuwatch_gpu_mig_instance_copy_engines", "Copy engines of the MIG instance.")
DECODERS = gauge("gpuwatch_gpu_mig_instance_decoders", "Video decoders of the MIG instance.")
ENCODERS = gauge("gpuwatch_gpu_mig_instance_encoders", "Video encoders of the MIG instance.")
JPEG_ENGINES = gauge("gpuwatch_gpu_mig_instance_jpeg_engines", "JPEG decoders of the MIG instance.")
OFA_ENGINES = gauge("gpuwatch_gpu_mig_instance_ofa_engines", "Optical flow engines of the MIG instance.")
