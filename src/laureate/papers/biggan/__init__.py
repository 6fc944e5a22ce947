"""Large-scale class-conditional GANs."""
