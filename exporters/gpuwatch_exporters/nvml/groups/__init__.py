"""What is read of a device, one file per group: each knows its calls and turns them into values of device/families."""
