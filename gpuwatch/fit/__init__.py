"""Who holds which device, and can a shape run here? Pure; knows nothing of policies or advice."""
