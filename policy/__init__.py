"""The perimeter: what may be written, read and sent, decided by rules a person can read. Decides; never acts."""
