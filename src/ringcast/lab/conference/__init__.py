"""`lab run conference`: what is asked of RT-Conference (paper 000, section 4): arithmetic, processes, browsers."""
